# SPDX-License-Identifier: Apache-2.0
"""Plans drawn at random: all kinds of phases on data and on names, all mappings and orders, phases with members of
their own over the plan's, stop rules, processes and threads. Small, so that every access of them can be counted."""

from __future__ import annotations

import copy
import random
from typing import Any

Plan = dict[str, Any]

READS = ("read", "reread", "read_only")


class Draw:
    """One plan from one number."""

    def __init__(self, number: int) -> None:
        self.of = random.Random(number)
        self.number = number

    def plan(self) -> Plan:
        kind = self.of.choice(("data", "data", "data", "names", "both", "sets"))
        plan: Plan = {"schema": "sonde-plan/2", "id": f"drawn-{self.number}", "target": {"path": "/tmp"}}
        if self.of.random() < 0.1:
            striping = self.some(count=self.of.choice((-1, 1, 4)), size=self.size(65536), start=3, pool="fast")
            plan["target"] |= {"striping": striping} if striping else {}
        plan["tasks"] = self.some(
            processes=self.of.randint(1, 4), threads=self.of.randint(1, 3), pin=self.of.random() < 0.3
        )
        self.tasks = plan["tasks"].get("processes", 1) * plan["tasks"].get("threads", 1)
        if self.of.random() < 0.2:
            plan["tasks"]["active"] = self.tasks = self.of.randint(1, self.tasks)
        phases: list[Plan] = []
        if kind == "sets":
            plan["meta"] = self.sets()
            phases += self.set_phases()
            plan["phases"] = [{"id": f"p{index}", **phase} for index, phase in enumerate(phases)]
            return plan
        if kind != "names":
            plan["data"] = self.data()
            phases += self.data_phases(plan["data"])
        if kind != "data":
            plan["meta"] = self.meta()
            phases += self.tree_phases(plan["meta"], both=kind == "both")
        plan["phases"] = [{"id": f"p{index}", **phase} for index, phase in enumerate(phases)]
        return plan

    def some(self, **members: Any) -> Plan:
        """Each member there or not."""
        return {name: value for name, value in members.items() if self.of.random() < 0.6}

    def size(self, number: int) -> Any:
        """The same size, written in one way or the other."""
        ways: list[Any] = [number, f"{number}B"]
        ways += [f"{number // 1024}KiB"] if number % 1024 == 0 else []
        ways += [f"{number // 1000}kB"] if number % 1000 == 0 else []
        return self.of.choice(ways)

    # Data ------------------------------------------------------------------------------------------------------------

    def data(self) -> Plan:
        mapping = self.of.choice(("shared", "per_task", "per_node", "per_group", "many"))
        files: Plan = {"mapping": mapping}
        if mapping == "per_group":
            files["group_size"] = self.of.randint(1, 5)
        if mapping == "many":
            files["count"] = self.of.randint(2, 4)
        folders = ("one", "per_node") if mapping == "shared" else ("one", "per_task", "per_node")
        files |= self.some(directories=self.of.choice(folders))
        self.mapping, self.count = mapping, files.get("count", 1)
        access = self.access({})
        data: Plan = {"files": files, "access": access}
        data |= self.some(
            io=self.some(fsync=self.of.choice(("none", "end", "per_op")), queue_depth=1, sync="none"),
            payload=self.some(kind=self.of.choice(("stamped", "random", "zero")), seed=self.of.randint(0, 3)),
            backend=self.of.choice(("posix", "null")),
        )
        return data

    def access(self, over: Plan) -> Plan:
        """Members of an access; those of a phase come over `over`, from which the block may be inherited."""
        transfer = self.of.choice((1, 47, 512, 1000, 4096, 65536))
        slots = self.of.randint(1, 5)
        access: Plan = {"transfer": self.size(transfer), "block": self.size(transfer * slots)}
        if self.of.random() < 0.2 and not over:
            del access["block"]
        amount = transfer * slots * self.of.randint(1, 6)
        access |= self.of.choice(
            (
                {},
                {"segments": self.of.randint(1, 6)},
                {"volume": self.size(amount)},
                {
                    "volume": {
                        "of": "bytes",
                        "bytes": self.size(amount),
                        "per": self.of.choice(("task", "node", "total")),
                    }
                },
                {"volume": {"of": "node_memory", "x": self.of.choice((0.0001, 0.001)), "per": "total"}},
                {"volume": {"of": "node_memory", "x": 0.0005}},
            )
        )
        order = self.of.choice(("sequential", "reverse", "stride", "random_permute", "random_replace"))
        access |= self.some(offset=self.size(self.of.choice((0, 1, 4096))))
        if order == "stride":
            access |= {"order": order, "stride": self.size(transfer + self.of.choice((0, 1, 5000)))}
        else:
            access |= self.some(order=order, gap=self.size(self.of.choice((0, 1, 4096))))
        access |= self.some(scope=self.of.choice(("block", "task", "file")), seed=self.of.randint(0, 2))
        if access.get("order") == "random_replace" and self.of.random() < 0.3:
            access["within"] = self.size(transfer * self.of.randint(1, 9))
        if access.get("order") == "random_replace" and self.of.random() < 0.3 and not over:
            access["distribution"] = self.of.choice(
                (
                    {"kind": "uniform"},
                    {"kind": "zipf", "theta": self.of.choice((0.5, 1.2))},
                    {"kind": "pareto", "share": self.of.choice((0.1, 0.3))},
                    {"kind": "normal"},
                )
            )
        if access.get("order") == "random_replace" and transfer > 512 and self.of.random() < 0.3 and not over:
            small = self.of.choice((1, 24, 500))
            access["sizes"] = [
                {"size": self.size(small), "percent": 25.0},
                {"size": self.size(transfer), "percent": 75},
            ]
        return access

    def own_access(self, data: Plan) -> Plan:
        """A phase's own members: one or two that fit to the plan's, or a whole access."""
        base = data["access"]
        if self.of.random() < 0.4:
            access = self.access(base)
            if base.get("order") == "stride":
                access.setdefault("order", "sequential")
                access |= {} if access["order"] == "stride" else {"stride": 0}
            if access.get("order") == "stride":
                access["gap"] = 0
            if "within" in base:
                access |= {"order": "random_replace", "within": access["transfer"], "gap": 0}
            return access
        choices: list[Plan] = [
            {"segments": self.of.randint(1, 6)},
            {"volume": {"of": "bytes", "bytes": "100kB", "per": "total"}},
            {"seed": self.of.randint(0, 2)},
            {"scope": self.of.choice(("block", "task", "file"))},
            {"offset": self.size(self.of.choice((0, 512)))},
        ]
        if "stride" not in base and "within" not in base:
            choices.append({"order": self.of.choice(("sequential", "reverse", "random_permute", "random_replace"))})
        if "block" in base and "within" not in base:
            choices.append({"transfer": base["block"]})
        own_members = {
            name: value for choice in self.of.sample(choices, self.of.randint(1, 2)) for name, value in choice.items()
        }
        if "volume" in own_members:
            own_members.pop("segments", None)
        return own_members

    def data_phases(self, data: Plan) -> list[Plan]:
        phases = [self.head("write", data)]
        for _ in range(self.of.randint(0, 4)):
            ops = ["write", "rewrite", *READS, "read", "mixed"]
            if self.mapping == "many":
                ops += ["duplex", "stat", "stat"]
            if self.mapping == "per_task":
                ops += ["stat"]
            phases.append(self.head(self.of.choice(ops), data))
        if self.mapping != "per_node" and self.of.random() < 0.3:
            phases.append({"op": "remove"})
        return phases

    def head(self, op: str, data: Plan) -> Plan:
        phase: Plan = {"op": op}
        if self.of.random() < (0.2 if op in READS else 0.4):
            phase["access"] = self.own_access(data)
        if op == "mixed":
            phase.setdefault("access", {})["read_ratio"] = self.of.choice((0.0, 0.25, 0.5, 1.0))
        if op == "write":
            phase |= self.some(open=self.of.choice(("truncate", "overwrite", "exclusive")))
        if op in READS or op == "stat":
            phase |= self.some(shift=self.shift())
        if op == "duplex":
            same = self.of.random() < 0.5 or self.tasks < 2
            halves = ("same", "same") if same else ("first_half", "second_half")
            phase["streams"] = [
                {"id": "in", "op": "read", "file": 0, "tasks": halves[0]},
                {"id": "out", "op": "write", "file": 1, "tasks": halves[1]},
            ]
        elif self.mapping == "many" and self.of.random() < 0.3:
            phase["files"] = self.of.sample(range(self.count), self.of.randint(1, self.count))
        if self.of.random() < 0.4:
            phase["stop"] = self.of.choice(
                ({"stonewall": "10s"}, {"stonewall": "1min", "wearout": True}, {"operations": self.of.randint(1, 7)})
            )
        phase |= self.some(io={"fsync": self.of.choice(("none", "end"))}, measure=self.of.random() < 0.5)
        if self.of.random() < 0.2:
            phase["before"] = [{"kind": "sync"}, {"kind": "sleep", "time": self.of.choice(("1s", "1000ms", 1))}]
        return phase

    def shift(self) -> Plan:
        by = self.of.choice(("none", "tasks", "nodes", "random", "permute"))
        return {"by": by, **self.some(n=self.of.randint(-2, 3), seed=self.of.randint(0, 2))}

    # Names -----------------------------------------------------------------------------------------------------------

    def tree(self) -> Plan:
        tree = self.some(
            depth=self.of.randint(0, 2),
            branching=self.of.randint(1, 3),
            leaf_only=self.of.random() < 0.5,
            copies=self.of.randint(1, 2),
            scope=self.of.choice(("shared", "per_task", "per_node")),
        )
        if self.of.random() < 0.7:
            return tree | {"items_per_dir": self.of.choice((1, 3, 80))}
        branching, depth = tree.get("branching", 1), tree.get("depth", 0)
        every = sum(branching**level for level in range(depth + 1))
        holders = branching**depth if tree.get("leaf_only") else every
        return tree | {"items_per_task": holders * tree.get("copies", 1) * self.of.randint(1, 3)}

    def meta(self) -> Plan:
        return {"tree": self.tree()} | self.some(
            file=self.some(write=self.size(self.of.choice((0, 100, 4096))), fsync=self.of.random() < 0.5),
            select={"order": "creation", **self.some(seed=self.of.randint(0, 2))},
            backend=self.of.choice(("posix", "null")),
            single_task=self.of.random() < 0.2,
        )

    # Windows of a tree: each phase says which items it works on, as md-workbench does ---------------------------------

    def sets(self) -> Plan:
        """Data sets of every task, in one directory each; self-describing content."""
        size = self.size(self.of.choice((1, 600, 4096)))
        tree = {"scope": "per_task", "items_per_dir": 40, **self.some(copies=self.of.randint(1, 3))}
        kind = self.of.choice(("ior_timestamp", "ior_offset"))
        return {
            "tree": tree | self.some(top="set", home_shift=self.of.randint(-1, 2)),
            "file": {"write": size, "read": size},
            "lookup": {"paths": "full"},
            "payload": {"kind": kind, **self.some(seed=self.of.randint(0, 3))},
            **self.some(backend=self.of.choice(("posix", "null"))),
        }

    def set_phases(self) -> list[Plan]:
        working = self.of.randint(1, 6)
        phases: list[Plan] = [{"op": "mktree"}, {"op": "create", "meta": self.window(0, working)}]
        first = 0
        for _ in range(self.of.randint(1, 3)):
            count = self.of.randint(0, 5)
            keep = self.of.random() < 0.3
            cycle: Plan = {"working": working, "keep": keep} | self.some(spread=self.of.randint(-2, 3))
            phases.append({"op": "cycle", "meta": {**self.window(first, count), "cycle": cycle}})
            phases[-1] |= self.some(verify="on_read")
            first += 0 if keep else count
        looks = [op for op in ("stat", "read") if self.of.random() < 0.5]
        phases += [{"op": op, "meta": self.window(first, working)} | self.some(shift=self.shift()) for op in looks]
        return [*phases, {"op": "remove", "meta": self.window(first, working)}, {"op": "rmtree"}]

    def window(self, first: int, count: int) -> Plan:
        return {"window": {"first": first, "count": count, **self.some(across=self.of.random() < 0.7)}}

    def tree_phases(self, meta: Plan, both: bool) -> list[Plan]:
        on: Plan = {"on": "meta"} if both else {}
        phases: list[Plan] = [{"op": "mktree"}, self.tree_phase({"op": "create"})]
        for _ in range(self.of.randint(1, 4)):
            op = self.of.choice(("stat", "open_close", "read", "readdir", "walk", "rename"))
            if op == "walk" and meta.get("backend") == "null":
                op = "readdir"  # what keeps nothing cannot be walked
            phase: Plan = {"op": op} | (on if op in ("stat", "read") else {})
            if op == "walk":
                phase |= self.some(meta=self.of.choice(({"find": {"name": "*1*"}}, {"find": {"size_min": "1KiB"}})))
            elif op != "readdir":
                phase = self.tree_phase(phase)
            phases.append(phase)
        if self.of.random() < 0.5:
            phases += [{"op": "remove", **on, **self.some(shift={"by": "permute", "seed": self.of.randint(0, 2)})}]
            phases += [{"op": "rmtree"}]
        return phases

    def tree_phase(self, phase: Plan) -> Plan:
        op = phase["op"]
        meta: Plan = {}
        if op in ("stat", "open_close", "read"):
            order = self.of.choice(("creation", "permute", "replace", "zipf"))
            meta |= self.some(
                select={"order": order, **self.some(seed=self.of.randint(0, 2), exponent=self.of.choice((1, 1.5)))}
            )
            phase |= self.some(shift=self.shift())
        if op == "stat":
            meta |= self.some(lookup=self.of.choice(({"stat": "statx", "fields": ["size"]}, {"paths": "full"})))
        if op == "read":
            meta |= self.some(file={"read": "50B"})
        if op in ("stat", "create", "open_close") and self.of.random() < 0.3:
            phase["stop"] = {"items": self.of.randint(1, 9)}
        return phase | ({"meta": meta} if meta else {})


def draw_plan(number: int) -> Plan:
    """The plan of that number, the same every time."""
    return Draw(number).plan()


# Changes of one member -----------------------------------------------------------------------------------------------

DATA_VALUES: dict[str, list[Any]] = {
    "transfer": [1, 512, 2000],
    "block": [12000, 4096 * 3],
    "segments": [1, 2, 7],
    "volume": ["64KiB", {"of": "bytes", "bytes": "64KiB", "per": "total"}],
    "order": ["sequential", "reverse", "random_permute", "random_replace"],
    "scope": ["block", "task", "file"],
    "gap": [0, 7],
    "offset": [0, 512],
    "seed": [0, 1, 5],
    "stride": [70000],
}
TREE_VALUES: dict[str, list[Any]] = {
    "depth": [0, 1, 2],
    "branching": [1, 2],
    "copies": [1, 3],
    "items_per_dir": [1, 2, 5],
    "scope": ["shared", "per_task", "per_node"],
    "leaf_only": [True, False],
    "top": ["items", "elsewhere"],
}
PHASE_VALUES: dict[str, list[Any]] = {
    "shift": [{"by": "tasks"}, {"by": "permute"}, {"by": "permute", "seed": 9}, {"by": "none"}],
    "stop": [{}, {"operations": 1}, {"items": 2}],
    "files": [[0], [1], [1, 0]],
    "open": ["truncate", "overwrite"],
}


def changed(plan: Plan, number: int) -> Plan:
    """The plan with one member changed. It may be wrong now, or mean the same."""
    of = random.Random(number)
    other = copy.deepcopy(plan)
    places: list[tuple[Plan, str, list[Any]]] = [(other["tasks"], name, [1, 2, 3]) for name in ("active",)]
    if "data" in other:
        places += [(other["data"]["access"], name, values) for name, values in DATA_VALUES.items()]
        places += [(other["data"]["files"], "mapping", ["shared", "per_task", "per_node"])]
    if "meta" in other:
        places += [(other["meta"]["tree"], name, values) for name, values in TREE_VALUES.items()]
        places += [(other["meta"].setdefault("file", {}), "write", [0, 100, 200])]
    for phase in other["phases"]:
        names = [*PHASE_VALUES]
        places += [(phase, name, PHASE_VALUES[name]) for name in names]
        if "access" in phase:
            places += [(phase["access"], name, values) for name, values in DATA_VALUES.items()]
        if "meta" in phase:
            if "window" in phase["meta"]:
                windows = [{"first": first, "count": count, "across": across}
                           for first in (0, 2) for count in (1, 3) for across in (True, False)]  # fmt: skip
                places += [(phase["meta"], "window", windows)]
            if "cycle" in phase["meta"]:
                places += [
                    (phase["meta"]["cycle"], "spread", [-1, 0, 1, 2]),
                    (phase["meta"]["cycle"], "working", [1, 4]),
                ]
                places += [(phase["meta"]["cycle"], "keep", [True, False])]
            select = [{"order": "permute"}, {"order": "permute", "seed": 4}, {"order": "creation"}]
            places += [(phase["meta"], "select", select)]
    table, name, values = of.choice(places)
    if name in table and of.random() < 0.3:
        del table[name]
        return other
    table[name] = of.choice(values)
    for member, conflicting in (("segments", "volume"), ("volume", "segments")):
        if name == member:
            table.pop(conflicting, None)
    return other
