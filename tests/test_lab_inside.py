"""What runs in the measured process: copies of inputs, overwritten inputs, comparisons. Eager torch stands in."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
sys.path.insert(0, str(Path(__file__).parent.parent / "analyzer/capture/inside"))

from inductor_audit_inside import notes, probes, replay  # noqa: E402
from inductor_audit_inside.compare import compare  # noqa: E402
from inductor_audit_inside.replay import RecordedGraph, clone  # noqa: E402
from inductor_audit_inside.rounds import _check, _export  # noqa: E402


def recorded(function, *inputs, name: str = "model__0_inference_0.0", user_outputs=None) -> RecordedGraph:
    graph = RecordedGraph(name, user_outputs)
    graph.on_call(function, list(inputs))
    return graph


def add_in_place(inputs):
    x, y = inputs
    inputs.clear()
    x += y
    return (x * 2,)


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.arange(12.0).reshape(3, 4),
        lambda: torch.arange(12.0).reshape(3, 4).t(),
        lambda: torch.arange(24.0)[2::3],
        lambda: torch.arange(3.0)[:, None].expand(3, 4),
        lambda: torch.arange(12.0)[5:],
        lambda: torch.empty(0, 3),
        lambda: torch.tensor(2),
        lambda: 7,
    ],
)
def test_a_clone_is_equal_in_values_and_strides_and_shares_nothing(make):
    value = make()
    copy = clone(value)
    if not isinstance(value, torch.Tensor):
        assert copy == value
        return
    assert torch.equal(copy, value)
    assert copy.stride() == value.stride()
    assert copy.numel() == 0 or copy.data_ptr() != value.data_ptr()


def test_inputs_are_those_before_the_first_call():
    x, y = torch.ones(3), torch.ones(3)
    graph = recorded(add_in_place, x, y)
    add_in_place([x, y])
    graph.on_call(add_in_place, [x, y])
    assert graph.calls == 2
    assert graph.pristine[0].tolist() == [1.0] * 3


def test_what_a_call_overwrites_is_put_back_before_the_next():
    """Without that, a thousand calls of an in-place update would measure other values, in the end infinities."""
    seen = []

    def spying(inputs):
        seen.append(inputs[0][0].item())
        return add_in_place(inputs)

    graph = recorded(spying, torch.ones(2), torch.ones(2))
    graph.warm_up()
    assert graph.round() > 0
    assert set(seen) == {1.0}


def test_cold_calls_at_the_start_of_a_round_are_not_measured(monkeypatch):
    """The clock only moves in a call: by 9 s while caches are cold, for two calls on fresh inputs, then by 1 s."""
    now, called = [0.0], list[object]()

    def cold_at_first(inputs):
        called.append(inputs[0].data_ptr())
        now[0] += 9.0 if called.count(called[-1]) <= 2 else 1.0
        return (inputs[0],)

    monkeypatch.setattr(replay.time, "perf_counter", lambda: now[0])
    graph = recorded(cold_at_first, torch.ones(4))
    assert graph.round() == 1.0
    assert len(called) == 5


def test_outputs_include_the_inputs_that_were_overwritten():
    outputs = recorded(add_in_place, torch.ones(1), torch.ones(1)).outputs([torch.ones(1), torch.ones(1)])
    assert [value.item() for value in outputs] == [2.0, 4.0]


def test_what_a_forward_saves_and_what_a_backward_uses_up_are_no_results():
    forward = recorded(lambda inputs: (inputs[0] * 2, inputs[0] * 3), torch.ones(1), user_outputs=1)
    assert [value.item() for value in forward.outputs([torch.ones(1)])] == [2.0]
    backward = recorded(add_in_place, torch.ones(1), torch.ones(1), name="model__0_backward_1.0")
    assert [value.item() for value in backward.outputs([torch.ones(1), torch.ones(1)])] == [4.0]


@pytest.mark.parametrize(
    ("found", "expected", "close"),
    [
        ([1.0, 2.0], [1.0, 2.0], True),
        ([1.0, 2.0 + 1e-7], [1.0, 2.0], True),
        ([1.0, 2.01], [1.0, 2.0], False),
        ([float("nan")], [float("nan")], True),
        ([float("inf")], [1.0], False),
    ],
)
def test_tolerances(found, expected, close):
    assert compare([torch.tensor(found)], [torch.tensor(expected)])["close"] is close


def test_tolerances_are_those_of_the_dtype():
    """One unit in the last place of bfloat16 is far more than float32 may be off."""
    one, other = torch.tensor([1.0]), torch.tensor([1.0 + 2**-7])
    assert compare([one], [other])["close"] is False
    assert compare([one.bfloat16()], [other.bfloat16()])["close"] is True


def test_the_size_of_a_difference():
    found = compare([torch.tensor([1.0, 10.5])], [torch.tensor([1.0, 10.0])])
    assert (found["max_abs"], found["max_rel"]) == (0.5, pytest.approx(0.05))


@pytest.mark.parametrize("other", [[torch.ones(3)], [torch.ones(2, dtype=torch.float64)], [torch.ones(2)] * 2, [1]])
def test_outputs_of_other_shapes_are_not_compared(other):
    found = compare([torch.ones(2)], other)
    assert found["close"] is None
    assert "differ in number, shape or dtype" in found["reason"]


def test_an_arm_is_compared_on_its_baselines_inputs(tmp_path):
    """The scripts drew other numbers; on equal inputs the results are equal."""
    file = str(tmp_path / "outputs")
    double = recorded(lambda inputs: (inputs[0] * 2,), torch.full((2,), 3.0))
    _export(file, [double], 0)
    found = _check(file, [recorded(lambda inputs: (inputs[0] + inputs[0],), torch.full((2,), 5.0))], 0)
    (result,) = found.values()
    assert (result["close"], result["max_abs"], result["inputs"]) == (True, 0.0, "same")


def test_random_numbers_are_seeded_alike(tmp_path):
    file = str(tmp_path / "outputs")
    _export(file, [recorded(lambda inputs: (torch.rand(3),), torch.ones(1))], 0)
    torch.rand(7)
    (result,) = _check(file, [recorded(lambda inputs: (torch.rand(3),), torch.ones(1))], 0).values()
    assert result["close"] is True


def test_a_backward_whose_forward_saved_something_else_runs_on_its_own_inputs(tmp_path):
    """Equal shapes do not mean equal roles: swapped inputs must not be mistaken for a wrong result."""
    file, name = str(tmp_path / "outputs"), "model__0_backward_1.0"
    a, b = torch.full((2,), 3.0), torch.full((2,), 5.0)
    _export(file, [recorded(lambda inputs: (inputs[0] - inputs[1],), a, b, name=name)], 0)
    (result,) = _check(file, [recorded(lambda inputs: (inputs[1] - inputs[0],), b, a, name=name)], 0).values()
    assert (result["close"], result["inputs"]) == (True, "own")


# ----------------------------------------------------------------------------------------------------- vector probes


@pytest.mark.parametrize(
    ("answers", "told", "asked", "kept"),
    [([True], True, 1, True), ([False, True], True, 2, True), ([False, False], False, 2, False)],
    ids=["yes", "no under load", "no"],
)
def test_only_a_yes_about_vector_instructions_is_kept(tmp_path, monkeypatch, answers, told, asked, kept):
    """A no may be torch's time limit on a busy machine: the kernels of the next process would be other ones."""
    monkeypatch.setattr(probes, "_key", lambda isa, code: "avx2")
    monkeypatch.setattr(notes, "NOTES", [])
    file, left = tmp_path / "probes.json", list(answers)
    file.write_text('{"avx2": false, "neon": true}')
    check_build = probes._remembering(lambda isa, code: left.pop(0), file)
    assert check_build("avx2", "") is told
    assert len(answers) - len(left) == asked
    assert (probes._read(file)["avx2"], probes._read(file)["neon"]) == (kept, True)
    assert [entry["where"] for entry in notes.NOTES] == ([] if told else ["vector ISA"])
    if kept:
        assert check_build("avx2", "") is True
        assert left == []
