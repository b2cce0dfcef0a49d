"""The registry of ablations: complete, consistent, and helpful about typing errors."""

from __future__ import annotations

import ast
import subprocess
import sys

import pytest

from analyzer.ablations import ABLATIONS, SWITCHES, Ablation, Layer, find
from analyzer.errors import UsageError

CONTRACT = [
    "inlining",
    "fusion",
    "inlining+fusion",
    "realize-thresholds",
    "vertical-fusion",
    "horizontal-fusion",
    "epilogue-fusion",
    "loop-layout-reordering",
    "matmul-templates",
    "parameter-freezing",
    "pattern-matching",
    "cudagraphs",
    "constant-folding",
    "decompositions",
    "buffer-reuse",
    "inplace-buffers",
    "memory-planning",
    "vectorization",
    "layout-optimization",
    "peak-memory-reordering",
    "cat-as-pointwise",
    "cse",
]

each = pytest.mark.parametrize("entry", ABLATIONS, ids=lambda entry: entry.name)


@pytest.mark.parametrize("name", CONTRACT)
def test_every_promised_ablation_exists(name: str) -> None:
    assert find(name).name == name


def test_names_are_unique() -> None:
    names = [entry.name for entry in ABLATIONS]
    assert len(names) == len(set(names))


@each
def test_an_entry_says_what_it_means_and_does_something(entry: Ablation) -> None:
    assert entry.summary
    assert entry.reading
    assert isinstance(entry.layer, Layer)
    assert entry.settings or entry.switches


@each
def test_settings_are_full_keys_with_python_literals(entry: Ablation) -> None:
    for setting in (*entry.settings, *entry.baseline):
        assert setting.key.startswith(("torch._inductor.config.", "torch._functorch.config.")), setting
        assert repr(ast.literal_eval(setting.value)) == setting.value
        assert setting.exists_in((2, 13))


@each
def test_switches_are_known_to_the_hook(entry: Ablation) -> None:
    assert set(entry.switches) <= set(SWITCHES)


@each
def test_a_baseline_does_not_ablate(entry: Ablation) -> None:
    switched = {setting.key: setting.value for setting in entry.baseline}
    for setting in entry.settings:
        assert switched.get(setting.key) != setting.value


def test_the_rows_of_the_paper_are_all_there() -> None:
    rows = {entry.row: entry.name for entry in ABLATIONS if entry.row}
    assert rows == {
        "without loop/layout reordering": "loop-layout-reordering",
        "without matmul templates": "matmul-templates",
        "without parameter freezing": "parameter-freezing",
        "without pattern matching": "pattern-matching",
        "without cudagraphs": "cudagraphs",
        "without fusion": "fusion",
        "without inlining": "inlining",
        "without fusion and inlining": "inlining+fusion",
    }


@pytest.mark.parametrize("name", ["epilogue-fusion", "matmul-templates", "parameter-freezing", "cudagraphs"])
def test_what_is_off_by_default_needs_a_baseline(name: str) -> None:
    assert find(name).baseline


def test_inlining_and_fusion_together_are_the_two_apart() -> None:
    both = find("inlining+fusion")
    assert both.switches == find("inlining").switches + find("fusion").switches
    assert both.settings == find("fusion").settings


def test_knobs_are_bound_to_the_versions_that_have_them() -> None:
    keys = {
        version: [setting.key.rpartition(".")[2] for setting in find("loop-layout-reordering").settings]
        for version in [(2, 13)]
    }
    assert "loop_reindexing_after_fusion" in keys[2, 13]
    old = [setting.key for setting in find("loop-layout-reordering").settings if setting.exists_in((2, 9))]
    assert [key.rpartition(".")[2] for key in old] == [
        "pick_loop_orders",
        "layout_optimization",
        "reorder_for_locality",
        "loop_ordering_after_fusion",
    ]


def test_an_unknown_name_suggests_near_ones() -> None:
    with pytest.raises(UsageError, match="unknown ablation: inlinning") as raised:
        find("inlinning")
    assert raised.value.hint == "Did you mean inlining or inlining+fusion?"


def test_a_name_like_nothing_points_at_the_list() -> None:
    with pytest.raises(UsageError) as raised:
        find("zzz")
    assert raised.value.hint == "`inductor-audit ablations` lists them all."


def test_the_registry_imports_no_torch() -> None:
    code = "import sys, analyzer.ablations, analyzer.capture; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
