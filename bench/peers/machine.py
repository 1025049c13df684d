"""What machine this is, and whether others use it: from /proc alone."""

import dataclasses
import os
import pathlib
import resource
import signal
import subprocess
import time

TICK = os.sysconf("SC_CLK_TCK")


def busy_seconds(stat="/proc/stat"):
    """Seconds that all CPUs together were busy since boot, time stolen by the host of a virtual machine included."""
    fields = pathlib.Path(stat).read_text(encoding="ascii").splitlines()[0].split()[1:]
    user, nice, system, _, _, irq, softirq, steal = (int(field) for field in fields[:8])
    return (user + nice + system + irq + softirq + steal) / TICK


def wait_for_idle(limit_s, busy_cpus=0.1, window_s=2.0):
    """Waits until less than `busy_cpus` CPUs were busy for a whole window. False if that did not happen within limit_s."""
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline:
        before, begin = busy_seconds(), time.monotonic()
        time.sleep(window_s)
        if (busy_seconds() - before) / (time.monotonic() - begin) < busy_cpus:
            return True
    return False


def take_priority():
    """Puts this process and its children into a scheduling group of the largest weight, so that others get next to nothing while
    they run. Needs root, and a kernel with autogroups."""
    if os.getpgrp() != os.getpid():
        os.setsid()
    pathlib.Path("/proc/self/autogroup").write_text("-19", encoding="ascii")


@dataclasses.dataclass
class Run:
    stdout: str
    stderr: str
    status: int
    wall_s: float
    own_cpu_s: float
    others_cpus: float  # CPUs that others kept busy, on average over the run


def run_alone(argv, timeout_s):
    """Runs `argv` and says how much of the machine others used meanwhile. At the timeout it is killed, with what it started."""
    before_busy, before = busy_seconds(), resource.getrusage(resource.RUSAGE_CHILDREN)
    begin = time.monotonic()
    # In this process's session, so that it shares its scheduling group; in a group of its own, so that all of it can be ended.
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, process_group=0) as process:
        try:
            out, err = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            out, err = process.communicate()
            err += f"\nended after {timeout_s} s"
    wall = time.monotonic() - begin
    busy = busy_seconds() - before_busy
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    own = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    # /proc/stat counts whole ticks of each CPU; what it misses of the run's own time is no negative use.
    return Run(out, err, process.returncode, wall, own, max(0.0, busy - own) / wall)


def describe(cpuinfo="/proc/cpuinfo"):
    """{kind, cpu, cpus}; kind is a name for tables: amd-avx512, intel-amx, amd-avx2 ..."""
    text = pathlib.Path(cpuinfo).read_text(encoding="utf-8")
    fields = {}
    for line in text.splitlines():
        key, _, value = line.partition(":")
        fields.setdefault(key.strip(), value.strip())
    flags = fields.get("flags", "").split()
    vendor = {"AuthenticAMD": "amd", "GenuineIntel": "intel"}.get(fields.get("vendor_id"), "other")
    level = next((name for flag, name in (("amx_tile", "amx"), ("avx512f", "avx512"), ("avx2", "avx2")) if flag in flags), "sse")
    return {"kind": f"{vendor}-{level}", "cpu": fields.get("model name", "unknown"), "cpus": os.cpu_count()}
