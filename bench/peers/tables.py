"""Statistics of readings, and the tables that show them."""

import statistics

MEASURES = ("prefill", "decode")


def spread(values):
    """{min, median, max, count} of a list, or None of an empty one."""
    if not values:
        return None
    return {"min": min(values), "median": statistics.median(values), "max": max(values), "count": len(values)}


def ratios(rounds, measure, engine, peers):
    """hone's reading over the best of `peers` in the same round, for the rounds in which `engine` and one of them have one."""
    out = []
    for readings in rounds:
        best = max((readings[peer][measure] for peer in peers if peer in readings), default=None)
        if best is not None and engine in readings:
            out.append(readings[engine][measure] / best)
    return out


def summarise(rounds, engines, hone):
    """Of rounds [{engine: {prefill, decode, ..}}]: the spread of each engine's rates and of hone's ratios to each peer."""
    peers = [name for name in engines if name != hone]
    summary = {"engines": {}, "ratios": {}}
    for name in engines:
        summary["engines"][name] = {m: spread([r[name][m] for r in rounds if name in r]) for m in MEASURES}
    extra = [r[hone] for r in rounds if hone in r]
    for fraction in ("prefill_of_peak", "decode_of_bandwidth"):
        summary[fraction] = spread([reading[fraction] for reading in extra if fraction in reading])
    for group, names in [*((peer, [peer]) for peer in peers), *([("best peer", peers)] if len(peers) > 1 else [])]:
        summary["ratios"][group] = {m: spread(ratios(rounds, m, hone, names)) for m in MEASURES}
    return summary


def aligned(rows):
    """Rows of cells as lines: the first column to the left, the others to the right."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return ["  ".join(cell.ljust(w) if i == 0 else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths))).rstrip()
            for row in rows]


def _cells(stats, digits):
    return [f"{stats[key]:.{digits}f}" for key in ("min", "median", "max")] if stats else ["-", "-", "-"]


def text(title, summary, thrown):
    """The tables of one model as lines; ratios first, for they are what is asked."""
    lines = [title, ""]
    head = [f"{measure} {key}" for measure in MEASURES for key in ("min", "median", "max")]
    rows = [["hone over", *head]]
    rows += [[name, *[cell for m in MEASURES for cell in _cells(by[m], 2)]] for name, by in summary["ratios"].items()]
    if summary["ratios"]:
        lines += [*aligned(rows), ""]
    rows = [["tokens/s", *head, "kept", "thrown away"]]
    for name, by in summary["engines"].items():
        kept = by["prefill"]["count"] if by["prefill"] else 0
        rows.append([name, *[cell for m in MEASURES for cell in _cells(by[m], 1)], str(kept), str(thrown.get(name, 0))])
    lines += aligned(rows)
    for fraction, meaning in (("prefill_of_peak", "hone's prefill of the measured arithmetic peak"),
                              ("decode_of_bandwidth", "hone's decode of the measured read bandwidth")):
        if summary[fraction]:
            lines.append(f"{meaning}: " + ", ".join(f"{100 * summary[fraction][k]:.0f} % {k}" for k in ("min", "median", "max")))
    return lines


def _rate(stats, digits=0):
    return f"{stats['median']:.{digits}f}" if stats else "-"


def _ratio(stats):
    return f"**{stats['median']:.2f}** ({stats['min']:.2f}-{stats['max']:.2f})" if stats else "-"


def peaks_line(peaks):
    """The peaks of a reading in words; those of other machines are named as absent."""
    parts = []
    for key, value in peaks.items():
        if not key.endswith("_per_s"):
            continue
        name, unit = key.removesuffix("_per_s").rsplit("_", 1)
        shown = f"{value / 1e9:.1f} GB/s" if unit == "bytes" else f"{value / 1e9:.0f} GOP/s"
        parts.append(f"{name.replace('_', ' ')} " + (shown if value else "not on this machine"))
    return ", ".join(parts)


def markdown(report):
    """A page for bench/results: the machine, its peaks, one table. Medians; ratios with (min-max)."""
    machine = report["machine"]
    lines = [f"# {machine['kind']}", "",
             f"Measured on {report['date']} on {machine['cpu']} with {report['threads']} of {machine['cpus']} CPUs by "
             "`bench/peers/compare.py` ([how](../../docs/benchmarks.md)): medians of "
             f"{report['repetitions']} rounds, ratios with (smallest-largest). Rates are tokens/s.", ""]
    if report.get("peaks"):
        lines += ["Peaks, as `hone bench` measured them in the same run: " + peaks_line(report["peaks"]) + ".", ""]
    lines += ["Engines: " + "; ".join(f"{e['name']} {e.get('version', '')}".rstrip() + f": `{e['command']}`" for e in report["engines"]) + ".",
              ""]
    names = [engine["name"] for engine in report["engines"]]
    rated = len(names) > 1
    head = ["model", "prompt", "", *names, *(["hone over the best"] if rated else []), "hone of the machine"]
    lines += ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for case in report["cases"]:
        summary = case["summary"]
        best = summary["ratios"].get("best peer") or next(iter(summary["ratios"].values()), None)
        for measure, fraction in (("prefill", "prefill_of_peak"), ("decode", "decode_of_bandwidth")):
            of = summary[fraction]
            row = [case["model"], str(case["prompt"]), measure]
            row += [_rate(summary["engines"][name][measure], 1 if measure == "decode" else 0) for name in names]
            row += [_ratio(best[measure])] if rated else []
            row += [f"{100 * of['median']:.0f} % of {'peak' if measure == 'prefill' else 'bandwidth'}" if of else "-"]
            lines.append("| " + " | ".join(row) + " |")
    if report["priority"]:
        lines += ["", "Others used the machine meanwhile; the engines ran in a scheduling group of the largest weight, and others got what "
                  "they left idle."]
    noisy = sum(sum(case["thrown_away"].values()) for case in report["cases"])
    lines += ["", f"{noisy} readings were thrown away because others used the machine meanwhile."]
    failed = [f"{case['model']} with {name}: {why}" for case in report["cases"] for name, why in case["failed"].items()]
    if failed:
        lines += ["", "No reading: " + "; ".join(failed) + "."]
    return lines
