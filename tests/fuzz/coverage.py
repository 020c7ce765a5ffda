"""Measures which branches of the readers the tests and the inputs of `make fuzz` reach, and writes the tables of README.md.

`make coverage` builds what this runs, in build/coverage. Every file that reads from outside is listed in READERS.
"""

import collections
import fnmatch
import json
import os
import pathlib
import shutil
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build/coverage"
RAW = BUILD / "raw"
README = ROOT / "tests/fuzz/README.md"

READERS = [
    *(f"weights/{room}/*" for room in ("io", "torch", "gguf", "huggingface", "checkpoint", "model")),
    *(f"runtime/{room}/*" for room in ("text", "tokenizer", "jinja", "grammar", "json_schema", "constraint")),
    *(f"runtime/chat/{name}*" for name in ("session_file", "message_json", "chat_json", "training_conversation",
                                          "answer_parser", "chat_template")),
    "runtime/calibrate/type_plan*", "runtime/inside/trace_*",
    "tools/http/*", "tools/openai/*",
    *(f"tools/serve/{name}*" for name in ("api", "ollama", "rollout", "response", "request_body", "completion", "model_shelf",
                                         "inside")),
    *(f"tools/options/{name}" for name in ("lines.h", "options.cpp", "grammar_options*")),
    "tools/terminal/line_*", "tools/terminal/text_columns*", "tools/chat/input_history*",
    *(f"tools/commands/{name}*" for name in ("npy", "calibration_text", "chosen_types", "scored_texts", "render", "tokenize",
                                            "validate")),
    "tools/batch/batch_lines*", "tools/batch/request_lines*", "tools/batch/result_files*",
]
# These read nothing from outside: they write, lock or listen.
NO_READERS = ["weights/gguf/writer*", "weights/io/output_file*", "weights/io/file_lock*", "weights/io/part_files*",
              "weights/base/parallel*", "tools/http/listener*", "tools/http/server*"]
CHUNK = 200


def tool(name):
    return shutil.which(name) or shutil.which(name + "-14") or name


def run(command, **options):
    environment = {**os.environ, "LLVM_PROFILE_FILE": str(RAW / "%8m.profraw"), "MINIMIND_PROGRAM": str(BUILD / "minimind")}
    return subprocess.run(command, cwd=ROOT, env=environment, **options)


def run_tests():
    """Timing does not count here: the tests' verdict is that of `make check`."""
    out = run([BUILD / "minimind_tests", "--gtest_brief=1"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout
    print("\n".join(line for line in out.splitlines() if line.startswith(("[  FAILED", "[  PASSED"))))


def run_inputs():
    for binary in sorted(BUILD.glob("*_fuzz")):
        target = binary.name.removesuffix("_fuzz")
        folders = [ROOT / "build/fuzz" / kind / target for kind in ("seeds", "corpus")]
        files = [path for folder in folders if folder.is_dir() for path in folder.rglob("*") if path.is_file()]
        for i in range(0, len(files), CHUNK):
            run([binary, *files[i:i + CHUNK]], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        print(f"{target}: {len(files)} inputs")


def is_reader(path):
    return any(fnmatch.fnmatch(path, pattern) for pattern in READERS) and not any(
        fnmatch.fnmatch(path, pattern) for pattern in NO_READERS)


def branches():
    """Yields file, branches and reached ones."""
    subprocess.run([tool("llvm-profdata"), "merge", "-sparse", "-o", BUILD / "all.profdata", *RAW.glob("*.profraw")], check=True)
    binaries = [BUILD / "minimind_tests", BUILD / "minimind", *sorted(BUILD.glob("*_fuzz"))]
    command = [tool("llvm-cov"), "export", "-summary-only", f"-instr-profile={BUILD / 'all.profdata'}", binaries[0]]
    for binary in binaries[1:]:
        command += ["-object", binary]
    exported = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    for file in exported["data"][0]["files"]:
        path = file["filename"]
        path = str(pathlib.Path(path).relative_to(ROOT)) if path.startswith("/") and path.startswith(str(ROOT)) else path
        path = path.removeprefix("./")
        count = file["summary"]["branches"]
        if is_reader(path) and count["count"] > 0:
            yield path, count["count"], count["covered"]


def coverage_table(rows):
    lines = ["| file | branches | reached | % |", "|---|---:|---:|---:|"]
    rooms = collections.defaultdict(lambda: [0, 0])
    for path, count, covered in sorted(rows):
        room = rooms[os.path.dirname(path)]
        room[0] += count
        room[1] += covered
        lines.append(f"| {path} | {count} | {covered} | {100 * covered / count:.1f} |")
    total = [sum(room[i] for room in rooms.values()) for i in (0, 1)]
    summary = ["| room | branches | reached | % |", "|---|---:|---:|---:|"]
    summary += [f"| {room} | {count} | {covered} | {100 * covered / count:.1f} |" for room, (count, covered) in rooms.items()]
    summary.append(f"| **all** | {total[0]} | {total[1]} | **{100 * total[1] / total[0]:.1f}** |")
    return "\n".join(summary) + "\n\n" + "\n".join(lines)


def runs_table():
    """The executions and the CPU time of every run of `make fuzz` in this folder, which are added to those that README.md has."""
    totals = collections.defaultdict(lambda: [0, 0])
    record = ROOT / "tests/fuzz/runs.tsv"
    new = ROOT / "build/fuzz/runs.tsv"
    for file in (record, new):
        for line in file.read_text().splitlines() if file.exists() else ():
            target, executions, seconds = line.split("\t")
            totals[target][0] += int(executions)
            totals[target][1] += int(seconds)
    record.write_text("".join(f"{target}\t{executions}\t{seconds}\n" for target, (executions, seconds) in sorted(totals.items())))
    if new.exists():
        new.unlink()
    lines = ["| target | inputs tried | CPU hours |", "|---|---:|---:|"]
    lines += [f"| {target} | {executions:,} | {seconds / 3600:.2f} |" for target, (executions, seconds) in sorted(totals.items())]
    both = [sum(total[i] for total in totals.values()) for i in (0, 1)]
    return "\n".join(lines + [f"| **all** | {both[0]:,} | **{both[1] / 3600:.2f}** |"])


def write_table(text, name, table):
    start, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
    before, rest = text.split(start)
    return before + start + table + "\n" + end + rest.split(end)[1]


def main():
    shutil.rmtree(RAW, ignore_errors=True)
    RAW.mkdir(parents=True)
    run_tests()
    run_inputs()
    text = README.read_text()
    text = write_table(text, "coverage", coverage_table(list(branches())))
    README.write_text(write_table(text, "runs", runs_table()))


if __name__ == "__main__":
    main()
