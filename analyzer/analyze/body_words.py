"""What a loop body computes, in the words that lowerings.py expects."""

from __future__ import annotations

from collections import Counter

from analyzer.analyze.lowerings import SAME, number_in
from analyzer.analyze.targets import words
from analyzer.model import LoopBody, Statement

_SILENT = words("""
    load store store_reduction constant get_index getitem set_indirect check_bounds index_expr to_dtype masked return
    masked_subblock load_seed identity to_dtype_bitcast partial_accumulate
""")
_LOOKED_THROUGH = words("to_dtype getitem identity")


def words_of(body: LoopBody) -> Counter[str]:
    """The multiset of operations that a loop body computes."""
    return Counter(_word(statement) for statement in body.statements() if statement.op not in _SILENT)


def _word(statement: Statement) -> str:
    if statement.op in ("reduction", "scan") and len(statement.args) > 2:
        return f"reduction:{statement.args[2]}"
    return SAME.get(statement.op, statement.op)


def root_of(body: LoopBody) -> str | None:
    """The operation that produces the stored value, casts looked through; `load` for a plain copy.

    `.0`, `.1` at its end number the results of an operation with several.
    """
    made = {statement.result: statement for statement in body.statements() if statement.result}
    stores = [s for s in body.statements() if s.op in ("store", "store_reduction") and len(s.args) > 2]
    statement = made.get(stores[-1].args[2]) if stores else None
    item, seen = "", 0
    while statement is not None and statement.op in _LOOKED_THROUGH and statement.args and seen < len(made):
        item = f".{statement.args[1]}" if statement.op == "getitem" else item
        statement, seen = made.get(statement.args[0]), seen + 1
    return None if statement is None else _word(statement) + item


def constants_of(body: LoopBody) -> Counter[float]:
    """The numbers that a loop body mentions, offsets into random seeds included."""
    texts = [s.args[0] for s in body.statements() if s.op == "constant" and s.args]
    texts += [s.args[1] for s in body.statements() if s.op == "load_seed" and len(s.args) > 1]
    return Counter(number for text in texts if (number := number_in(text)) is not None)
