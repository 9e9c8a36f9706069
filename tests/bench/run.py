"""Measures what the design promises: `make bench`, or with ARGS="--check" to fail where a budget is exceeded.

Times on a fleet are compared within one run, in interleaved rounds and by their medians, because only ratios mean
something on a machine that does other things too. All targets share the controller's processors here, so work on the
nodes counts as if a single machine did it for all of them: real fleets fare better.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

CHECKOUT = Path(__file__).parents[2]
sys.path[:0] = [str(CHECKOUT), str(CHECKOUT / "tests" / "lab")]

from labs import BOOT, Lab, own_name  # noqa: E402

from lab import network  # noqa: E402
from lab.calico import calico  # noqa: E402
from lab.control_plane import ControlPlane  # noqa: E402
from lab.fleet import Fleet, missing, plain  # noqa: E402
from lab.space import Space  # noqa: E402

RESULTS = Path(__file__).parent / "results"
BIN = Path(os.environ.get("NODECARE_ANSIBLE") or Path(sys.executable).parent)
PARTS = ["probe", "judge", "fleet", "members"]
BUDGETS = [  # name, where it is in the results, unit, at most
    ("preflight against ping", ("fleet", "preflight", "ratio"), "×", 1.3),
    ("preflight with a cluster against ping", ("members", "preflight with a cluster", "ratio"), "×", 1.6),
    ("probe, processor time", ("probe", "node_check", "cpu_s"), "s", 1.0),
    ("probe, memory", ("probe", "node_check", "memory_mib"), "MiB", 64),
    ("probe, payload", ("probe", "node_check", "payload_kb"), "KB", 350),
    ("1000 nodes judged and reported", ("judge", "1000", "seconds"), "s", 5),
    ("1000 nodes of a cluster judged and reported", ("judge", "1000 with a cluster", "seconds"), "s", 5),
    ("1000 nodes, memory", ("judge", "1000", "memory_mib"), "MiB", 500),
    ("1000 nodes against 100", ("judge", "1000", "ratio"), "×", 11),
]


def main() -> int:
    wanted = arguments()
    with tempfile.TemporaryDirectory(prefix="nodecare-bench-") as place:
        results: dict = {}
        if "probe" in wanted.parts or "judge" in wanted.parts:
            say("the probe on this machine, %d times" % wanted.rounds)
            results["probe"], facts = probe(Path(place), wanted.rounds)
        if "judge" in wanted.parts:
            say("judging and reporting made-up nodes")
            results["judge"] = judge(facts, wanted.rounds, [str(count) for count in wanted.nodes])
        if "fleet" in wanted.parts:
            results["fleet"] = fleet(Path(place), wanted)
        if "members" in wanted.parts:
            results.update(members(wanted))
    wanted.results.mkdir(exist_ok=True)
    (wanted.results / "bench.json").write_text(json.dumps(results, indent=1) + "\n")
    text, over = table(results)
    (wanted.results / "bench.md").write_text(text)
    print(text)
    return 1 if over and wanted.check else 0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hosts", type=int, default=50, help="SSH targets (50)")
    parser.add_argument("--forks", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--only", nargs="+", choices=["preflight", "setup", "six tasks"], help="what to compare with ping on the fleet (everything)")
    parser.add_argument("--nodes", type=int, nargs=2, default=[100, 1000], help="made-up nodes to judge and report, few and many (100 1000)")
    parser.add_argument("--results", type=Path, default=RESULTS, help="the directory for bench.json and bench.md")
    parser.add_argument("--check", action="store_true", help="fail where a budget is exceeded")
    return parser.parse_args()


# -- a fleet -----------------------------------------------------------------------------------------------------------


def fleet(place: Path, wanted: argparse.Namespace) -> dict:
    why = missing()
    if why:
        raise SystemExit("no fleet: " + why)
    reports = "nodecare_report_dir=%s" % (place / "report")
    commands = {
        "ping": ["ansible", "all", "-m", "ping"],
        "preflight": ["ansible-playbook", "playbooks/preflight.yml", "-e", reports, "-e", "nodecare_fail_on=never"],
        "setup": ["ansible", "all", "-m", "setup"],
        "six tasks": ["ansible-playbook", "tests/bench/six_reads.yml"],
    }
    commands = {name: argv for name, argv in commands.items() if name == "ping" or name in (wanted.only or commands)}
    with Fleet(plain(wanted.hosts)) as targets:
        return compared(rounds(commands, targets, wanted.rounds, wanted.forks), "ping")


def members(wanted: argparse.Namespace) -> dict:
    """The same with a real API server, of which the targets are the Nodes; nothing where this machine runs no lab."""
    lab = Lab(own_name("b"))
    unable, why = lab.ask("check")
    if unable:
        say("preflight with a cluster is left out: " + why)
        return {}
    try:
        say("an API server with Calico's manifest; what it is made of is built first where that was not done yet")
        lab.do("up", "--nodes", 0, "--layer", "cluster", timeout=BOOT)
        space = Space(lab.name)
        network.apply(ControlPlane(space), calico())
        numbers = map(str, (wanted.hosts, wanted.forks, wanted.rounds))
        argv = space.inside(sys.executable, Path(__file__).with_name("members.py"), lab.do("kubeconfig"), *numbers)
        return {"members": json.loads(subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, check=True).stdout)}
    finally:
        lab.do("down")


def rounds(
    commands: Mapping[str, list[str]], targets: Fleet, number: int, forks: int, quiet: Callable[[], AbstractContextManager] = nullcontext
) -> dict[str, list[dict]]:
    """What each command takes on all targets, turn by turn; ``quiet`` silences what is not to be measured."""
    seen: dict[str, list[dict]] = {name: [] for name in commands}
    for turn in range(number):
        for name, argv in commands.items():
            say("round %d of %d: %s on %d targets" % (turn + 1, number, name, len(targets.targets)))
            with quiet():
                seen[name].append(_timed([str(BIN / argv[0]), *argv[1:], "-i", str(targets.inventory), "-f", str(forks)], targets.environment()))
            targets.hang_up()
    return seen


def _timed(argv: list[str], environment: dict[str, str]) -> dict:
    start = time.monotonic()
    process = subprocess.Popen(argv, cwd=CHECKOUT, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    said = process.stdout.read()
    _pid, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit("%s ended with %d:\n%s" % (" ".join(argv), process.returncode, "\n".join(said.splitlines()[-30:])))
    return {"seconds": time.monotonic() - start, "cpu_s": used.ru_utime + used.ru_stime, "memory_mib": used.ru_maxrss / 1024}


def compared(seen: dict[str, list[dict]], base: str) -> dict:
    """The medians of each measure, and by how much each is slower than the base; ratios are taken round by round."""
    result = {}
    for name, rounds in seen.items():
        ratios = [one["seconds"] / other["seconds"] for one, other in zip(rounds, seen[base])]
        result[name] = {key: round(statistics.median(one[key] for one in rounds), 3) for key in rounds[0]}
        result[name].update(ratio=round(statistics.median(ratios), 3), rounds=[round(one["seconds"], 2) for one in rounds])
    return result


# -- the probe ---------------------------------------------------------------------------------------------------------


def probe(place: Path, rounds: int) -> tuple[dict, dict]:
    """What the modules cost on a node: their payloads, as Ansible sends them, run by themselves. Answers the facts too."""
    result, facts = {}, {}
    for name in ("ansible.builtin.ping", "nodecare.kubernetes.node_check", "ansible.builtin.setup"):
        payload = _payload(place, name)
        runs = [_run_payload(payload) for _round in range(rounds)]
        short = name.rpartition(".")[2]
        result[short] = {key: round(statistics.median(run[key] for run in runs), 3) for key in ("cpu_s", "seconds", "memory_mib")}
        result[short].update(payload_kb=round(payload.stat().st_size / 1000, 1), answer_kb=round(len(runs[0]["said"]) / 1000, 1))
        if short == "node_check":
            facts = json.loads(runs[0]["said"])["facts"]
            result[short].update(gathering_cpu_s=facts["taken"]["cpu"], gathering_s=facts["taken"]["seconds"])
    return result, facts


def _payload(place: Path, module: str) -> Path:
    """The file that Ansible would send, kept by Ansible itself."""
    kept = place / module
    interpreter = Fleet({}).python
    settings = {"ANSIBLE_KEEP_REMOTE_FILES": "1", "ANSIBLE_REMOTE_TEMP": str(kept), "ANSIBLE_PIPELINING": "0", "ANSIBLE_LOCAL_TEMP": str(place / "tmp")}
    argv = [str(BIN / "ansible"), "localhost", "-i", "localhost,", "-c", "local", "-m", module, "-e", "ansible_python_interpreter=%s" % interpreter]
    _timed(argv, {**os.environ, **settings})
    return next(kept.glob("*/AnsiballZ_*.py"))


def _run_payload(payload: Path) -> dict:
    start = time.monotonic()
    process = subprocess.Popen([Fleet({}).python, str(payload)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    said = process.stdout.read()
    _pid, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return {"said": said, "seconds": time.monotonic() - start, "cpu_s": used.ru_utime + used.ru_stime, "memory_mib": used.ru_maxrss / 1024}


# -- judging -----------------------------------------------------------------------------------------------------------


def judge(facts: dict, rounds: int, counts: list[str]) -> dict:
    """In fresh processes, turn by turn."""
    kinds = {**{count: [count] for count in counts}, counts[-1] + " with a cluster": [counts[-1], "cluster"]}
    seen: dict[str, list[dict]] = {name: [] for name in kinds}
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT / ".collections")}
    for _round in range(rounds):
        for name, runs in seen.items():
            argv = [sys.executable, str(Path(__file__).with_name("judging.py")), *kinds[name]]
            done = subprocess.run(argv, input=json.dumps(facts), stdout=subprocess.PIPE, text=True, env=environment, check=True)
            runs.append(json.loads(done.stdout))
    return compared(seen, counts[0])


# -- telling -----------------------------------------------------------------------------------------------------------


def table(results: dict) -> tuple[str, list[str]]:
    """Markdown, and the names of the budgets that were exceeded."""
    lines = []
    if "fleet" in results or "members" in results:
        lines += ["| SSH targets | wall time | against ping | controller's processor time | its memory |", "|---|---:|---:|---:|---:|"]
        row = "| %s | %.1f s | %.2f × | %.1f s | %.0f MiB |"
        keys = ("seconds", "ratio", "cpu_s", "memory_mib")
        lines += [row % (name, *(one[key] for key in keys)) for part in ("fleet", "members") for name, one in results.get(part, {}).items()]
        lines.append("")
    if "probe" in results:
        lines += ["| module on the node | processor time | wall time | memory | payload | answer |", "|---|---:|---:|---:|---:|---:|"]
        row = "| %s | %.2f s | %.2f s | %.0f MiB | %.0f KB | %.0f KB |"
        keys = ("cpu_s", "seconds", "memory_mib", "payload_kb", "answer_kb")
        lines += [row % (name, *(one[key] for key in keys)) for name, one in results["probe"].items()]
        lines.append("")
    if "judge" in results:
        lines += ["| nodes | judging | reporting | together | ratio | memory | findings |", "|---|---:|---:|---:|---:|---:|---:|"]
        row = "| %s | %.2f s | %.2f s | %.2f s | %.1f × | %.0f MiB | %d |"
        keys = ("judging_s", "reporting_s", "seconds", "ratio", "memory_mib", "findings")
        lines += [row % (name, *(one[key] for key in keys)) for name, one in results["judge"].items()]
        lines.append("")
    over = []
    lines += ["| budget | measured | at most | |", "|---|---:|---:|---|"]
    for name, path, unit, most in BUDGETS:
        measured = results
        for step in path:
            measured = (measured or {}).get(step)
        if measured is not None:
            over += [name] if measured > most else []
            lines.append("| %s | %.2f %s | %g %s | %s |" % (name, measured, unit, most, unit, "OVER" if measured > most else "kept"))
    return "\n".join(lines) + "\n", over


def say(message: str) -> None:
    print("bench: " + message, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
