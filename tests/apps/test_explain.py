#!/usr/bin/env python3
"""hone explain: the screen, one layer, one node, and what it draws."""
import json
import os
import re
import shutil
import unittest
import xml.etree.ElementTree

import command
from command import DATA, LLAMA, QWEN, CommandTest

LAYERS = 2
LINES, COLUMNS = 45, 120
SVG = "{http://www.w3.org/2000/svg}"


class ScreenTest(CommandTest):
    def screen(self, *flags):
        return self.ok("explain", LLAMA, *flags).out.decode().splitlines()

    def test_the_numbers_that_matter_come_first(self):
        levels = self.answer("explain", LLAMA)["levels"]
        first = self.screen()[0]
        before, after = levels["O1"]["launches"], levels["O3"]["launches"]
        self.assertTrue(first.startswith(f"launches {before} -> {after} ({round(100 * (after - before) / before)} %), bytes moved "), first)
        self.assertIn("activation memory", first)

    def test_one_screen(self):
        lines = self.screen()
        self.assertLessEqual(len(lines), LINES)
        self.assertLessEqual(max(map(len, lines)), COLUMNS)

    def test_contracts_are_short_but_for_wide_and_json(self):
        contract = next(row["contract"] for row in self.answer("explain", LLAMA)["passes"] if row["name"] == "fuse-attention")
        self.assertGreater(len(contract), 60)
        row = next(line for line in self.screen() if line.startswith("fuse-attention"))
        self.assertTrue(row.endswith("  reorders, bound .."), row)
        self.assertIn(contract, "\n".join(self.screen("--wide")))

    def test_rules_are_named_and_counted(self):
        """simplify takes one view away per firing here; a pass that saves launches names its rules where there is room."""
        passes = {row["name"]: row for row in self.answer("explain", LLAMA)["passes"]}
        simplify = passes["simplify"]
        self.assertEqual(simplify["rules"], [{"name": "reshape-of-reshape", "fired": simplify["nodes_before"] - simplify["nodes_after"]}])
        text = f"  reshape-of-reshape {simplify['rules'][0]['fired']}"
        lines = self.screen()
        self.assertEqual(lines[[line.split(" ")[0] for line in lines].index("simplify") + 1], text)
        self.assertEqual(passes["fuse-norm"]["rules"], [{"name": "rms_norm", "fired": 2 * LAYERS + 1}])
        self.assertNotIn("  rms_norm 5", lines)
        wide = self.screen("--wide")
        self.assertEqual(wide[[line.split(" ")[0] for line in wide].index("fuse-norm") + 1], "  rms_norm 5")
        self.assertEqual(passes["fuse-softmax"]["rules"], [{"name": "softmax", "fired": LAYERS}])
        self.assertEqual(passes["dce"]["rules"], [])

    def test_columns_are_aligned(self):
        lines = self.screen()
        head = next(i for i, line in enumerate(lines) if line.startswith("pass "))
        ends = [lines[head].index(name) + len(name) for name in ("nodes", "launches", "bytes moved", "activation memory", " ms")]
        for line in lines[head + 1:lines.index("", head)]:
            if line.startswith("  "):  # the rules of the pass above
                continue
            for end in ends if "(unchanged)" not in line else (ends[0], ends[-1]):
                self.assertRegex(line[end - 1:end + 1], r"^\S $", line)

    def test_the_top_is_what_the_nodes_cost(self):
        seen = self.answer("explain", LLAMA)
        self.assertEqual((seen["batch"], seen["tokens"], seen["ctx"]), (1, 512, 512))
        for kind, field in (("bytes", "bytes"), ("operations", "operations"), ("memory", "memory_bytes")):
            top = seen["top"][kind]
            self.assertLessEqual(len(top), 5)
            costs = [row[field] for row in top]
            self.assertEqual(costs, sorted(costs, reverse=True))
            self.assertGreater(costs[0], 0)
        self.assertLessEqual(sum(row["bytes"] for row in seen["top"]["bytes"]), seen["levels"]["O3"]["bytes"])
        # A kind of node of both layers is one row: what --layer says of its nodes, added up.
        row = next(row for row in seen["top"]["bytes"] if row["module"].startswith("layers.*"))
        nodes = [node for i in range(LAYERS) for node in self.answer("explain", LLAMA, "--layer", i)["layer"]["after"]["nodes"]
                 if (node["op"], node["type"], node["module"]) == (row["op"], row["type"], row["module"].replace("*", str(i)))]
        self.assertEqual((len(nodes), sum(node["bytes"] for node in nodes)), (row["nodes"], row["bytes"]))
        self.assertIn(f"\n{row['op']}", "\n" + "\n".join(self.screen()))

    def test_time_comes_from_a_profile(self):
        self.assertEqual(self.answer("explain", LLAMA)["top"]["time"], [])
        measured = self.answer("profile", LLAMA, "--ids", "1,2,3", "-n", 2)
        file = self.write("profile.json", json.dumps(measured))
        top = self.answer("explain", LLAMA, "--times", file)["top"]["time"]
        wanted = sorted(measured["ops"], key=lambda row: -row["total_s"])[:5]
        self.assertEqual([(row["op"], row["phase"], row["total_s"]) for row in top],
                         [(row["op"], row["phase"], row["total_s"]) for row in wanted])
        lines = self.screen("--times", file)
        head = next(i for i, line in enumerate(lines) if line.startswith("most time"))
        self.assertEqual(lines[head + 1].split()[:3], [wanted[0]["op"], str(wanted[0]["launches"]), f"{wanted[0]['total_s'] * 1e3:.2f}"])
        self.fails_both(3, "explain", LLAMA, "--times", self.write("bad.json", '{"ops": 1}'), says=("bad.json",))

    def test_each_pass_says_why_it_stands_there(self):
        for row in self.answer("explain", LLAMA)["passes"]:
            self.assertGreater(len(row["why"]), 10)


class LayerTest(CommandTest):
    def test_before_and_after_side_by_side(self):
        lines = self.ok("explain", LLAMA, "--layer", 1).out.decode().splitlines()
        seen = self.answer("explain", LLAMA, "--layer", 1)["layer"]
        before, after = seen["before"], seen["after"]
        self.assertEqual((seen["number"], before["level"], after["level"]), (1, "O1", "O3"))
        self.assertTrue(lines[0].startswith(f"launches {before['launches']} -> {after['launches']} ("), lines[0])
        rows = lines[lines.index("") + 2:]
        for side, part in ((before, 0), (after, 1)):
            shown = [row.partition(" | ")[2 * part].split() for row in (row + " " for row in rows)]
            shown = [row for row in shown if row]
            self.assertEqual([row[1] for row in shown], [node["op"] for node in side["nodes"]])
            self.assertEqual([row[2] for row in shown], [node["type"] for node in side["nodes"]])
            self.assertEqual([row[0] for row in shown], ["-" if n["step"] < 0 else str(n["step"]) for n in side["nodes"]])
            self.assertEqual(side["launches"], sum(node["step"] >= 0 for node in side["nodes"]))
            self.assertEqual(side["bytes"], sum(node["bytes"] for node in side["nodes"]))
        self.assertEqual({row.index("|") for row in rows}, {rows[0].index("|")})

    def test_a_value_that_stays_stands_beside_itself(self):
        """Both sums of the layer, into the residual stream, are written by add at O1 and by a fused node at O3."""
        seen = self.answer("explain", LLAMA, "--layer", 1)["layer"]
        sides = [[node["value"] for node in side["nodes"]] for side in (seen["before"], seen["after"])]
        sums = [node["value"] for node in seen["before"]["nodes"] if node["op"] == "add" and node["type"] == "f32[B,T,256]"]
        self.assertEqual(len(sums), 2)
        lines = self.ok("explain", LLAMA, "--layer", 1).out.decode().splitlines()
        places = [0, 0]
        beside = []
        for line in lines[lines.index("") + 2:]:
            halves = [bool(half.strip()) for half in line.split("|")]
            if all(halves):
                beside.append(tuple(side[place] for side, place in zip(sides, places)))
            places = [place + there for place, there in zip(places, halves)]
        for value in sums:
            self.assertIn((value, value), beside)

    def test_level_and_sizes_count(self):
        after = self.answer("explain", LLAMA, "--layer", 0, "--level", "O2")["layer"]["after"]
        self.assertEqual(after["level"], "O2")
        small = self.answer("explain", LLAMA, "--layer", 0, "--tokens", 8, "--ctx", 8)["layer"]["after"]
        self.assertLess(small["bytes"], after["bytes"])

    def test_a_layer_that_is_not_there(self):
        error = self.fails_both(2, "explain", LLAMA, "--layer", LAYERS, says=("--layer", "0 to 1", "2"))
        self.assertEqual(error["expected"], "0 to 1")
        self.fails_both(2, "explain", LLAMA, "--layer", -1, says=("--layer", "-1"))
        # Nothing is written then.
        self.fails(2, "explain", LLAMA, "--layer", 7, "--graph", self.path("g.dot"), "--html", self.path("p.html"))
        self.assertEqual(os.listdir(self.folder), [])


class NodeTest(CommandTest):
    def test_by_value_with_and_without_percent(self):
        nodes = self.answer("explain", LLAMA, "--layer", 0)["layer"]["after"]["nodes"]
        fused = next(node for node in nodes if node["op"] == "attention")
        for name in (fused["value"], fused["value"][1:]):
            self.assertEqual(self.answer("explain", LLAMA, "--node", name)["nodes"], [fused])
        text = self.ok("explain", LLAMA, "--node", fused["value"]).out.decode()
        self.assertTrue(text.startswith(f"{fused['value']} = attention of layers.0.attn\n"), text)
        for part in (fused["kernel"], f"step {fused['step']} of", "offset", "graph \"attention\"", "reduce_max"):
            self.assertIn(part, text)
        for value in fused["inputs"] + fused["outputs"]:
            self.assertRegex(text, rf"(reads|writes) +{value['value']} +{re.escape(value['type'])}")

    def test_place_is_that_of_the_plan(self):
        """At the sizes of a plan whose chunk and context are the step's."""
        sizes = ("--tokens", 64, "--ctx", 64)
        nodes = self.answer("explain", LLAMA, "--layer", 1, *sizes)["layer"]["after"]["nodes"]
        memory = [node["memory"] for node in nodes if "memory" in node]
        self.assertGreater(len(memory), 2)
        whole = self.answer("explain", LLAMA, *sizes)["levels"]["O3"]["activation_bytes"]
        for place in memory:
            self.assertLessEqual(place["offset"] + place["bytes"], whole)
            self.assertLessEqual(place["first"], place["last"])

    def test_by_module_and_by_name_of_a_weight(self):
        nodes = self.answer("explain", LLAMA, "--node", "lm_head")["nodes"]
        self.assertEqual({node["module"] for node in nodes}, {"lm_head"})
        nodes = self.answer("explain", LLAMA, "--node", "blk.0.attn_q.weight")["nodes"]
        self.assertTrue(all(any(i["name"] == "blk.0.attn_q.weight" for i in node["inputs"]) for node in nodes))
        self.assertEqual(len(nodes), 1)

    def test_a_value_that_a_pass_took_away_names_the_pass(self):
        value = next(n["value"] for n in self.answer("explain", LLAMA, "--layer", 0)["layer"]["before"]["nodes"] if n["op"] == "exp")
        error = self.fails_both(2, "explain", LLAMA, "--node", value, says=("fuse-softmax", "--stop-after"))
        self.assertIn("pass fuse-softmax took", error["message"])
        flags = re.search(r"--node (%\d+) --stop-after (\S+)$", error["try"])
        self.assertEqual(self.answer("explain", LLAMA, "--node", flags[1], "--stop-after", flags[2])["nodes"][0]["op"], "exp")

    def test_a_name_that_is_nobodys(self):
        self.assertIn("layers.1.attn", self.fails_both(2, "explain", LLAMA, "--node", "layers.1.atn", says=("did you mean",))["try"])
        self.fails_both(2, "explain", LLAMA, "--node", "%99999", says=("%99999",))


class DrawingTest(CommandTest):
    def draw(self, name, *flags, model=LLAMA, **options):
        self.ok("explain", model, f"--graph={self.path(name)}", *flags, **options)
        with open(self.path(name), encoding="utf-8") as file:
            return file.read()

    def nodes(self, layer):
        return self.answer("explain", LLAMA, "--layer", layer)["layer"]["after"]["nodes"]

    def test_svg_has_boxes_shapes_kernels_and_costs(self):
        root = xml.etree.ElementTree.fromstring(self.draw("x.svg", "--layer", 1).encode())
        self.assertEqual(root.tag, SVG + "svg")
        text = "\n".join(element.text or "" for element in root.iter(SVG + "text"))
        groups = [group.get("class") for group in root.iter(SVG + "g")]
        fused = [node for node in self.nodes(1) if "body" in node]
        self.assertGreaterEqual(groups.count("cluster"), len(fused))
        for node in self.nodes(1):
            self.assertIn(f"{node['op']}\u00a0\u00a0{node['value']}".replace("\u00a0", " "), text.replace("\u00a0", " "))
            if node["kernel"]:
                self.assertIn(f"step {node['step']}: {node['kernel']}", text)
        edges = [group for group in root.iter(SVG + "g") if group.get("class") == "edge"]
        labels = [element.text for edge in edges for element in edge.iter(SVG + "text")]
        self.assertIn("f32[1,N,256]", labels)

    def test_dot_needs_no_graphviz_and_svg_names_the_package(self):
        empty = {"PATH": self.folder}
        self.assertTrue(self.draw("x.dot", environment=empty).startswith('digraph "llama" {'))
        self.fails_both(3, "explain", LLAMA, "--graph", self.path("x.svg"), environment=empty, fault="user",
                        says=("apt-get install graphviz", ".dot"))
        self.assertFalse(os.path.exists(self.path("x.svg")))

    def test_a_layer_as_text_is_a_graph_that_hone_opt_reads(self):
        text = self.draw("layer.ir", "--layer", 1)
        done = command.run("hone-opt", self.path("layer.ir"))
        self.assertEqual((done.code, done.out.decode()), (0, text), done.err)
        self.assertIn('graph "llama.layers.1"', text)
        self.assertNotIn("layers.0", text)
        self.assertIn("layers.0", self.draw("all.ir"))

    def test_layer_is_a_part_of_the_drawing(self):
        whole, part = self.draw("whole.dot"), self.draw("part.dot", "--layer", 0)
        self.assertIn("layers.1.attn", whole)
        self.assertNotIn("layers.1.attn", part)
        self.assertIn("layers.0.attn", part)

    def test_other_endings_are_refused_before_anything_is_done(self):
        for name in ("x.png", "x", "svg"):
            self.fails_both(2, "explain", LLAMA, "--graph", self.path(name), says=("--graph", "F.svg, F.dot or F.ir"))
        self.assertEqual(os.listdir(self.folder), [])


class PageTest(CommandTest):
    def page(self, model, *flags):
        self.ok("explain", model, "--html", self.path("page.html"), *flags)
        with open(self.path("page.html"), encoding="utf-8") as file:
            text = file.read()
        return text, json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)[1])

    def test_the_page_has_the_times_of_a_run(self):
        self.assertEqual(self.page(QWEN)[1]["times"], [])
        run = self.answer("profile", QWEN, "--ids", "1,2,3", "-n", "2")
        times = self.write("run.json", json.dumps(run))
        rows = self.page(QWEN, "--times", times)[1]["times"]
        self.assertEqual(sorted((row["op"], row["phase"], row["total_s"]) for row in run["ops"]),
                         sorted((op, phase, seconds) for op, phase, _, seconds, _ in rows))
        self.assertEqual(rows, sorted(rows, key=lambda row: -row[3]))

    def test_the_page_has_what_the_document_has(self):
        text, data = self.page(QWEN)
        seen = self.answer("explain", QWEN)
        self.assertEqual(data["levels"], seen["levels"])
        self.assertEqual([row["name"] for row in data["passes"]], [row["name"] for row in seen["passes"]])
        graphs = data["graphs"]["passes"]
        self.assertEqual([graph["name"] for graph in graphs], [""] + [row["name"] for row in seen["passes"]])
        for graph, row in zip(graphs[1:], seen["passes"]):
            self.assertEqual(len(graph["nodes"]), row["nodes_after"])
        self.assertEqual(len(data["table"]), seen["levels"]["O3"]["nodes"])
        for level, shown in zip(("O1", "O3"), data["maps"]):
            self.assertEqual((shown["level"], shown["bytes"]), (level, seen["levels"][level]["activation_bytes"]))
            # No two values that are alive together share a byte, and nothing sticks out.
            lives = shown["lives"]
            self.assertLessEqual(max(offset + size for _, _, size, offset, _, _ in lives), shown["bytes"])
            for i, (_, _, size, offset, first, last) in enumerate(lives):
                for _, _, other, place, begin, end in lives[:i]:
                    if size and other and first <= end and begin <= last:
                        self.assertTrue(offset + size <= place or place + other <= offset)

    def test_the_page_needs_nothing_else(self):
        text, _ = self.page(LLAMA)
        self.assertIn("default-src 'none'", text)
        self.assertEqual(set(re.findall(r"https?://[^'\" ]+", text)), {"http://www.w3.org/2000/svg"})
        self.assertEqual(re.findall(r"<(?:script|link|img|iframe)[^>]*\b(?:src|href)=(?!\"data:,\")", text), [])

    def test_a_hostile_file_name_stays_text(self):
        name = "<script>alert(1)<\\script>&.gguf"
        shutil.copy(LLAMA, self.path(name))
        text, data = self.page(self.path(name))
        self.assertEqual(data["title"], name)
        self.assertNotIn("<script>alert", text)
        self.assertIn("&lt;script&gt;alert(1)&lt;\\script&gt;&amp;.gguf</title>", text)

    def test_every_reference_model_has_a_page(self):
        for name in sorted(os.listdir(os.path.join(DATA, "models"))):
            with self.subTest(model=name):
                _, data = self.page(os.path.join(DATA, "models", name))
                self.assertGreater(data["graphs"]["layers"], 0)


if __name__ == "__main__":
    command.main()
