"""What the comparisons here share: options, the time they have, and the report of what they find."""

import argparse
import collections
import json
import pathlib
import random
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]


class Comparison:
    """Counts cases and saves disagreements, each as a line of JSON in OUT/NAME.jsonl."""

    def __init__(self, name, description):
        parser = argparse.ArgumentParser(description=description)
        parser.add_argument("--program", default="./minimind")
        parser.add_argument("--seconds", type=float, default=60)
        parser.add_argument("--seed", type=int, default=None, help="of the random cases (default: the time)")
        parser.add_argument("--out", default="build/fuzz/differential", help="folder for what disagrees")
        options = parser.parse_args()
        self.name, self.program = name, options.program
        self.seed = options.seed if options.seed is not None else int(time.time())
        random.seed(self.seed)
        self.end = time.monotonic() + options.seconds
        self.counts = collections.Counter()
        self.faults = 0
        out = pathlib.Path(options.out)
        out.mkdir(parents=True, exist_ok=True)
        self.file = open(out / f"{name}.jsonl", "a", encoding="utf-8")

    def has_time(self):
        return time.monotonic() < self.end

    def count(self, kind, number=1):
        self.counts[kind] += number

    def disagree(self, kind, **case):
        self.counts[kind] += 1
        self.faults += 1
        line = json.dumps({"kind": kind, **case}, ensure_ascii=True)
        self.file.write(line + "\n")
        self.file.flush()
        if self.faults <= 20:
            print(line[:1000])

    def finish(self):
        """Prints the counts. Ends the process with status 1 if there were disagreements."""
        print(f"{self.name} (seed {self.seed}):", ", ".join(f"{kind} {count}" for kind, count in sorted(self.counts.items())))
        if self.faults:
            print(f"{self.faults} disagreements are in {self.file.name}")
        sys.exit(1 if self.faults else 0)
