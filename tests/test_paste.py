"""Pasted dumps read as the files they were copied from, with lines and columns of the pasted text."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from analyzer.artifacts import ir_dump, paste
from analyzer.model import ArtifactState

RUNS = Path(__file__).parents[1] / "fixtures" / "runs"
(POST,) = (RUNS / "cpu-2.15/c03_softmax").glob("**/ir_post_fusion.txt")
TEXT = POST.read_text()
PREFIX = "I1130 02:24:17.870000 17118 torch/_inductor/debug.py:796] [0/0] "


def prefixed(prefix: str) -> Callable[[str], str]:
    return lambda text: "\n".join(prefix + line for line in text.split("\n"))


WRAPPINGS: dict[str, Callable[[str], str]] = {
    "crlf": lambda text: text.replace("\n", "\r\n"),
    "cr": lambda text: text.replace("\n", "\r"),
    "colours": lambda text: "".join(f"\x1b[1;32m{line}\x1b[0m\n" for line in text.split("\n")),
    "log": prefixed(f"{PREFIX}[__ir_post_fusion] "),
    "rank": prefixed(f"[rank0]:{PREFIX}[__ir_post_fusion] "),
    "nested": prefixed(f"(worker pid=7) 2026-01-01 {PREFIX}[__ir_post_fusion] "),
    "untagged": prefixed(PREFIX),
    "cut": prefixed("0000 17118 torch/_inductor/debug.py:796] [0/0] [__ir_post_fusion] "),
    "cut in the tag": prefixed("r_post_fusion] "),
    "comment": prefixed("# "),
    "quote": prefixed("> "),
    "fence": lambda text: f"```\n{text}```\n",
    "entities": lambda text: text.replace("'", "&#39;").replace("<", "&lt;"),
    "no-break blanks": lambda text: text.replace("    ", "\xa0   "),
    "banner": lambda text: f"AFTER FUSION\n{text}",
}


@pytest.mark.parametrize("wrapping", WRAPPINGS.values(), ids=WRAPPINGS)
def test_what_a_paste_adds_is_taken_away(wrapping: Callable[[str], str]) -> None:
    plain, pasted = ir_dump.parse(TEXT, "x"), ir_dump.parse(wrapping(TEXT), "x")
    assert pasted.artifact.problems == ()
    assert pasted.artifact.state is ArtifactState.PARSED
    assert [leaf.body for leaf in pasted.leaves()] == [leaf.body for leaf in plain.leaves()]
    assert [node.name for node in pasted.nodes] == [node.name for node in plain.nodes]
    assert [node.unmet for node in pasted.leaves()] == [node.unmet for node in plain.leaves()]


def test_a_clean_text_is_left_alone() -> None:
    assert not paste.needs_cleaning(TEXT)
    assert paste.clean(TEXT) is TEXT


def test_lines_keep_their_numbers() -> None:
    pasted = f"some words\n{PREFIX}[__ir_post_fusion] AFTER FUSION\n" + WRAPPINGS["log"](TEXT)
    node = ir_dump.parse(pasted, "x").nodes[0]
    assert node.location is not None
    assert node.location.line == 3
    assert paste.clean(pasted).split("\n")[2:] == TEXT.split("\n")


def test_places_are_those_of_the_pasted_text() -> None:
    damaged = TEXT.replace(".writes = ", ".writes ] ", 1)
    (plain,) = ir_dump.parse(damaged, "x").artifact.problems
    prefix = f"{PREFIX}[__ir_post_fusion] "
    (pasted,) = ir_dump.parse(prefixed(prefix)(damaged), "x").artifact.problems
    assert (pasted.location.line, pasted.location.column) == (plain.location.line, plain.location.column + len(prefix))
    assert pasted.excerpt.startswith(PREFIX)


LOG = "\n".join(
    [
        f"{PREFIX}[__ir_pre_fusion] BEFORE FUSION",
        f"{PREFIX}[__ir_pre_fusion] op0: NopKernelSchedulerNode(ConcatKernel)",
        f"{PREFIX}[__ir_pre_fusion] op0.writes = []",
        f"{PREFIX}[__fusion] ===== attempting fusion (1/10): 1 nodes =====",
        f"{PREFIX}[__ir_pre_fusion] op0.unmet_dependencies = []",
        f"{PREFIX}[__ir_pre_fusion] op0.met_dependencies = []",
        f"{PREFIX}[__ir_post_fusion] AFTER FUSION",
        f"{PREFIX}[__ir_post_fusion] op7: NopKernelSchedulerNode(ConcatKernel)",
        f"{PREFIX}[__ir_post_fusion] op7.writes = []",
        f"{PREFIX}[__ir_post_fusion] op7.unmet_dependencies = []",
        f"{PREFIX}[__ir_post_fusion] op7.met_dependencies = []",
        "",
    ]
)


def test_a_log_with_both_dumps_is_read_one_by_one() -> None:
    assert [(dump.kind, dump.first_line) for dump in paste.clean_dumps(LOG)] == [("pre", 1), ("post", 7)]
    pre, post = (ir_dump.parse(LOG, f"run/ir_{kind}_fusion.txt") for kind in ("pre", "post"))
    assert [node.name for node in pre.nodes] == ["op0"]
    assert [node.name for node in post.nodes] == ["op7"]
    assert post.nodes[0].location is not None
    assert post.nodes[0].location.line == 8
    (left_out,) = pre.artifact.problems
    assert (left_out.location.line, left_out.lines) == (7, 4)
    assert pre.artifact.state is ArtifactState.PARTIAL


def test_the_pretty_form_in_a_log_is_not_read_as_nothing() -> None:
    text = f"{PREFIX}[__ir_pre_fusion_pretty] PRE-FUSION PRETTY IR\n{PREFIX}[__ir_pre_fusion_pretty] kernel op3(\n"
    artifact = ir_dump.parse(text, "x").artifact
    assert artifact.state is ArtifactState.UNSUPPORTED
    assert artifact.cause is not None
    assert "pretty IR" in artifact.cause
