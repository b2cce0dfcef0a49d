"""Captures for a GPU that is not there, and captures that stop after code generation; no compiler of either runs."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from analyzer.artifacts.ir_dump import parse as parse_dump
from analyzer.audit import audit
from analyzer.capture import CaptureRequest, CaptureResult, capture, script_command
from analyzer.lab import ArmSpec, Role, Script, Status, Target
from analyzer.lab.run import ArmTask, capture_arm
from analyzer.load import load_run
from analyzer.model import CompiledGraph
from analyzer.verdict import Verdict

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs torch"),
]
needs_triton = pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="needs triton")

HERE = Path(__file__).parent
CUDA = HERE.parent / "fixtures/programs/cuda"
FEW = ("mlp_train", "block_bf16", "adam", "dynamic", "cpu_and_cuda", "user_triton")
"""Of the 33 case programs, those that use different parts; all of them with INDUCTOR_AUDIT_ALL_CASES=1."""

ARTIFACTS = (
    "deviceless.json",
    "fx_graph_readable.py",
    "fx_graph_runnable.py",
    "fx_graph_transformed.py",
    "inductor_audit.json",
    "inductor_provenance_tracking_node_mappings.json",
    "ir_post_fusion.txt",
    "ir_pre_fusion.txt",
    "output_code.py",
)


def run(out: Path, program: Path, *arguments: str, **options) -> CaptureResult:
    return capture(CaptureRequest(script_command(str(program), arguments), out=out, timeout=900, **options))


def for_cuda(out: Path, program: str, *arguments: str, **options) -> CaptureResult:
    return run(out, CUDA / program, *arguments, **{"target": "cuda", **options})


def kernels(graph: CompiledGraph) -> list[str]:
    return [kernel.name for kernel in graph.code.kernels] if graph.code else []


def flaws(result: CaptureResult) -> list[str]:
    return [f"{finding.kind}: {finding.message}" for finding in result.findings]


# ------------------------------------------------------------------------------------------------ the founding example


@pytest.fixture(scope="module")
def base(tmp_path_factory) -> CaptureResult:
    return for_cuda(tmp_path_factory.mktemp("base") / "run", "sin_cos.py")


@needs_triton
def test_one_triton_kernel(base):
    (graph,) = load_run(base.folder).graphs
    assert (base.exit_code, flaws(base)) == (0, [])
    assert base.manifest.device == "NVIDIA A100-SXM4-80GB (assumed)"
    assert (base.manifest.target, base.manifest.codegen_only) == ("cuda", True)
    assert kernels(graph) == ["triton_poi_fused_cos_sin_0"]
    code = (Path(graph.path) / "output_code.py").read_text(encoding="utf-8")
    assert "DeviceProperties(type='cuda', index=0, multi_processor_count=108, cc=80" in code
    assert "call" in {call.scope for call in graph.code.calls()}


@needs_triton
def test_two_triton_kernels_without_inlining_and_fusion(base, tmp_path):
    ablated = for_cuda(tmp_path / "ablated", "sin_cos.py", ablations=("inlining+fusion",))
    (graph,) = load_run(ablated.folder).graphs
    assert kernels(graph) == ["triton_poi_fused_cos_0", "triton_poi_fused_sin_1"]
    assert audit(load_run(base.folder), load_run(ablated.folder)).verdict is Verdict.EFFECTIVE


@needs_triton
def test_what_was_assumed_decides_nothing(tmp_path):
    """Without a device nobody knows whether a Triton template beats the extern kernel."""
    base = for_cuda(tmp_path / "base", "max_autotune.py", baseline_of=("epilogue-fusion",))
    ablated = for_cuda(tmp_path / "ablated", "max_autotune.py", ablations=("epilogue-fusion",))
    judged = audit(load_run(base.folder), load_run(ablated.folder))
    assert judged.verdict is Verdict.UNDECIDED
    assert "triton_mm_0 was assumed" in judged.graphs[0].why
    assert judged.graphs[0].why.endswith("Capture both arms on a device to decide it.")


# ---------------------------------------------------------------------------------------------------------- all cases


@needs_triton
def test_case_programs_give_whole_folders_and_the_known_kernels(tmp_path, capfd):
    """Training, attention, convolution, an optimizer, symbolic shapes, a mixed graph, a kernel of the user's own."""
    golden = HERE / f"goldens/deviceless_{'.'.join(version('torch').split('.')[:2])}.json"
    if not golden.exists():
        pytest.skip(f"no kernel names are known for torch {version('torch')}")
    expected = json.loads(golden.read_text(encoding="utf-8"))
    names = list(expected) if os.environ.get("INDUCTOR_AUDIT_ALL_CASES") else list(FEW)
    result = for_cuda(tmp_path / "run", "cases.py", *names)
    told = re.findall(r"^(\w+) (\d+) (-?\d+)$", capfd.readouterr().out, re.MULTILINE)
    assert (result.exit_code, flaws(result)) == (0, [])
    assert {name: folders(result.folder, pid) for name, pid, _ in told} == {name: expected[name] for name in names}


def folders(run: Path, pid: str) -> list[list[str]]:
    """Per graph of a process, in order: its kind, and its kernels."""
    found = sorted(run.glob(f"torch_compile_debug/run_*-pid_{pid}/torchinductor/model_*"), key=number)
    for folder in found:
        assert {path.name for path in folder.iterdir()} >= set(ARTIFACTS)
        assert parse_dump((folder / "ir_post_fusion.txt").read_text(encoding="utf-8"), "post").nodes
    return [[kind(folder), *defined(folder)] for folder in found]


def number(folder: Path) -> int:
    return int(folder.name.rpartition(".")[2])


def kind(folder: Path) -> str:
    return re.sub(r"model__\d+_(\w+)_\d+\.\d+", r"\1", folder.name)


def defined(folder: Path) -> list[str]:
    code = (folder / "output_code.py").read_text(encoding="utf-8")
    return re.findall(r"^(\w+) = async_compile\.\w+\(", code, re.MULTILINE)


# ----------------------------------------------------------------------------------------- the user's own surroundings


@needs_triton
def test_nothing_is_left_behind_and_the_exit_code_is_the_programs_own(tmp_path, capfd):
    home, program = tmp_path / "home", tmp_path / "ends.py"
    home.mkdir()
    program.write_text(
        "import sys, torch\n"
        "loss = torch.compile(lambda x: x.sin().sum())(torch.randn(8, device='cuda', requires_grad=True))\n"
        "loss.backward()\n"
        "print('loss', loss.item())\n"
        "sys.exit(3)\n",
        encoding="utf-8",
    )
    caches = {name: tmp_path / name for name in ("TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR")}
    for folder in caches.values():
        folder.mkdir()
        (folder / "kernel").write_text("warm", encoding="utf-8")
    places = {"HOME": home, "TMPDIR": home, "XDG_CACHE_HOME": home / "cache", **caches}
    before = dict(os.environ)
    result = run(
        tmp_path / "run", program, target="cuda:h100", env={name: str(place) for name, place in places.items()}
    )
    assert result.exit_code == 3
    assert dict(os.environ) == before
    assert [sorted(folder.rglob("*")) for folder in caches.values()] == [[f / "kernel"] for f in caches.values()]
    assert [entry.folder.rpartition("/")[2] for entry in result.manifest.graphs] == [
        "model__0_backward_2.1",
        "model__0_forward_1.0",
    ]
    assert list(home.rglob("*")) == []
    assert capfd.readouterr().out == "loss 1.0\n"
    choices = load_run(result.folder).graphs[0].deviceless
    assert choices is not None
    assert choices.profile == "h100"


EVERYDAY = """
import sys, torch
from torch import nn
assert torch.accelerator.is_available() and torch.accelerator.current_accelerator().type == "cuda"
device = torch.accelerator.current_accelerator()
assert torch.tensor([1.0, 2.0], device=device).is_cuda
assert torch.tril_indices(3, 3, device=device).shape == (2, 6)
model = nn.LSTM(4, 8).to(device)
assert model(torch.randn(2, 3, 4, device=device))[0].shape == (2, 3, 8)
tied = nn.Linear(2, 2, device=device)
assert tied.weight.data_ptr() == tied.weight.data.view(-1).data_ptr() != tied.bias.data_ptr()
open(sys.argv[1], "w").write("an earlier checkpoint")
torch.save(tied.state_dict(), sys.argv[1])
torch.save(nn.Linear(2, 2).state_dict(), sys.argv[2])
assert torch.load(sys.argv[2], map_location="cuda")["weight"].is_cuda
loss = tied(torch.ones(2, device=device)).sum()
assert torch.allclose(loss, loss) and torch.equal(loss, loss)
torch.cuda.synchronize()
print(f"loss {loss:.2f}", open(sys.argv[1]).read())
"""


@needs_triton
def test_what_programs_do_every_day_goes_on(tmp_path, capfd):
    """Copies and factories below Python dispatch, cuDNN's layers, checkpoints that must stay, values to print."""
    program = tmp_path / "everyday.py"
    program.write_text(EVERYDAY, encoding="utf-8")
    files = (str(tmp_path / "kept.pt"), str(tmp_path / "real.pt"))
    result = capture(CaptureRequest(script_command(str(program), files), out=tmp_path / "run", target="cuda"))
    told = capfd.readouterr()
    assert (result.exit_code, told.out) == (0, "loss 1.00 an earlier checkpoint\n"), told.err[-2000:]


HOSTILE = """
import os, torch
from inductor_audit_inside.deviceless.refusals import explain
library = torch.library.Library("mine", "DEF")
library.define("scale(Tensor x) -> Tensor")
library.impl("scale", lambda x: x * 2, "CUDA")

@torch.library.custom_op("mine::twice", mutates_args=(), device_types="cuda")
def twice(x: torch.Tensor) -> torch.Tensor:
    return x * 2

def tensor():
    return torch.randn(8, device="cuda")

def waits():
    while tensor_of_one.item() > 0.1:
        pass

def nccl():
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29555", RANK="0", WORLD_SIZE="1")
    torch.distributed.init_process_group("nccl")

tensor_of_one = torch.ones(1, device="cuda")
programs = {
    "eager op": lambda: torch.ops.mine.scale(tensor()),
    "compiled op": lambda: torch.compile(lambda x: torch.ops.mine.twice(x) + 1)(tensor()),
    "shape": lambda: torch.nonzero(tensor()),
    "mask": lambda: tensor()[tensor() > 0],
    "waits": waits,
    "nccl": nccl,
    "graph": torch.cuda.CUDAGraph,
    "generator": lambda: torch.randn(3, device="cuda", generator=torch.Generator("cuda")),
    "memory": lambda: torch.utils.dlpack.to_dlpack(tensor()),
    "pickle": lambda: __import__("pickle").dumps(tensor()),
}
for name, program in programs.items():
    try:
        program()
        print(name, "went on")
    except Exception as error:
        operator, advice = next(explain(error), ("?", f"{type(error).__name__}: {error}"))
        print(f"{name}: {operator}: {advice[:60]}")
"""


@needs_triton
def test_ten_hostile_programs_fail_with_a_name_and_an_advice(tmp_path, capfd):
    """Neither a crash of the process nor a hang: each is an exception that is explained."""
    program = tmp_path / "hostile.py"
    program.write_text(HOSTILE, encoding="utf-8")
    result = run(tmp_path / "run", program, target="cuda")
    told = capfd.readouterr()
    operators = dict(line.split(": ", 2)[:2] for line in told.out.splitlines())
    assert result.exit_code == 0, told.err[-2000:]
    assert operators == {
        "eager op": "mine.scale.default",
        "compiled op": "mine::twice",
        "shape": "aten.nonzero.default",
        "mask": "aten.nonzero.default",
        "waits": "a loop",
        "nccl": "torch.distributed",
        "graph": operators["graph"],  # of the runtime, or of torch.cuda where that is not built in
        "generator": operators["generator"],
        "memory": "a CUDA extension",
        "pickle": "pickle",
    }
    assert operators["graph"] in ("torch.cuda", "a function of the CUDA runtime")
    assert "has read a value 1000 times" in told.err


@needs_triton
def test_an_operator_that_needs_the_device_is_named(tmp_path, capfd):
    program = tmp_path / "custom.py"
    program.write_text(
        "import torch\n"
        "library = torch.library.Library('mine', 'DEF')\n"
        "library.define('scale(Tensor x) -> Tensor')\n"
        "library.impl('scale', lambda x: x * 2, 'CUDA')\n"
        "torch.ops.mine.scale(torch.randn(8, device='cuda'))\n",
        encoding="utf-8",
    )
    result = run(tmp_path / "run", program, target="cuda")
    assert result.exit_code == 1
    (found,) = [finding for finding in result.findings if finding.kind == "needs-device"]
    assert "mine.scale.default" in found.message
    assert f"({program}:5)" in found.message
    assert "torch.library.register_fake('mine::scale')" in str(found.hint)
    assert "UnsupportedOperatorException" in capfd.readouterr().err


# ------------------------------------------------------------------------------------------------ code generation only

TRAINING = """
import copy, torch
from torch import nn
torch.manual_seed(0)
plain = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 3))
model = copy.deepcopy(plain)
x, counter = torch.randn(4, 8), torch.zeros(3)
def step(model, counter):
    loss = model(x).pow(2).sum()
    counter.add_(1).mul_(2)
    return loss
def gradients(function, model, counter):
    loss = function(model, counter)
    loss.backward()
    return [loss, counter, *(parameter.grad for parameter in model.parameters())]
old = gradients(step, plain, counter.clone())
new = gradients(torch.compile(step), model, counter)
assert all(torch.allclose(a, b, atol=1e-5) for a, b in zip(old, new, strict=True))
softmax = torch.compile(lambda x: torch.softmax(x * 2, -1), dynamic=True)
for size in (3, 5):
    x = torch.randn(size, size + 1)
    assert torch.allclose(softmax(x), torch.softmax(x * 2, -1))
from torch._inductor.codecache import CppPythonBindingsCodeCache
assert not CppPythonBindingsCodeCache.cache
print("right")
"""


def test_codegen_only_writes_code_and_keeps_results_right(tmp_path, capfd):
    """No kernel is compiled: forward, backward, a mutated input, symbolic shapes."""
    program = tmp_path / "train.py"
    program.write_text(TRAINING, encoding="utf-8")
    result = run(tmp_path / "run", program, codegen_only=True)
    captured = capfd.readouterr()
    assert (result.exit_code, captured.out) == (0, "right\n"), captured.err[-2000:]
    assert flaws(result) == []
    graphs = load_run(result.folder).graphs
    assert sorted(graph.kind for graph in graphs) == ["backward", "forward", "inference"]
    assert all(kernels(graph) and graph.deviceless is None for graph in graphs)
    assert result.manifest.codegen_only is True


NEEDS_KERNELS = """
import torch
torch.compile(lambda x: torch.sin(torch.cos(x)))(torch.randn(1000))
from torch._inductor.codecache import PyCodeCache
assert PyCodeCache.modules, "the wrapper was not loaded"
"""


def test_an_arm_that_cannot_do_without_its_kernels_gets_them(tmp_path):
    """Captures of an experiment write kernels only, and compile them for a script that fails so."""
    (tmp_path / "needs.py").write_text(NEEDS_KERNELS, encoding="utf-8")
    spec, script = ArmSpec("baseline", Role.BASELINE), Script(str(HERE / "without_cxx.py"), ("needs.py",))
    task = ArmTask(script, spec, tmp_path / "out", tmp_path, sys.executable, target=Target(codegen_only=True))
    found = capture_arm(task)
    assert found.status is Status.FINE, found.why
    assert load_run(found.folder).manifest.codegen_only is False


# ------------------------------------------------------------------------------------------------- the backward engine

ENGINE = """
import sys
sys.path.insert(0, sys.argv[1])
import torch
import torch.autograd.graph as graph
from inductor_audit_inside.deviceless import engine

class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2, x * 3
    @staticmethod
    def backward(ctx, a, b):
        return 2 * a + 3 * b

def program(w, b, x):
    hidden = torch.tanh(x @ w + b)
    first, unused = Twice.apply(hidden)
    shared = first * hidden
    return (shared + shared.sum(0, keepdim=True) * b).logsumexp(1).sum() + w.pow(3).sum()

def leaves():
    torch.manual_seed(0)
    return [torch.randn(*size, dtype=torch.float64, requires_grad=True) for size in ((4, 5), (5,), (3, 4))]

one, other = leaves(), leaves()
seen = []
other[0].register_hook(lambda gradient: seen.append(gradient.shape))
program(*one).backward()
root = [engine.edge_of(graph, program(*other))]
engine._run(graph, root, [torch.ones((), dtype=torch.float64)], accumulate_grad=True)
assert all(torch.allclose(a.grad, b.grad) for a, b in zip(one, other, strict=True))
assert seen == [(4, 5)]

loss = program(*one)
wanted = torch.autograd.grad(loss, one[:2], create_graph=True)
loss = program(*one)
root = [engine.edge_of(graph, loss)]
found = engine._run(graph, root, [torch.ones((), dtype=torch.float64)], None, True, one[:2])
assert all(torch.allclose(a, b) for a, b in zip(wanted, found, strict=True))
second = [torch.autograd.grad(part[0].sum() + part[1].sum(), one[0])[0] for part in (wanted, found)]
assert torch.allclose(*second)

stranger = torch.ones(1, requires_grad=True)
again = [engine.edge_of(graph, program(*one))]
arguments = ([torch.ones((), dtype=torch.float64)], None, False, [stranger])
assert engine._run(graph, again, *arguments, True) == (None,)
try:
    engine._run(graph, again, *arguments)
except RuntimeError as error:
    assert "not have been used" in str(error)
else:
    raise AssertionError("an unused input went unnoticed")
print("same")
"""


def test_the_python_engine_gives_the_gradients_of_the_real_one(tmp_path):
    """Shared nodes, broadcast bias, a function with an unused output, hooks, second derivatives, unused inputs."""
    program = tmp_path / "engine.py"
    program.write_text(ENGINE, encoding="utf-8")
    inside = str(HERE.parent / "analyzer/capture/inside")
    done = subprocess.run([sys.executable, str(program), inside], capture_output=True, text=True, check=False)
    assert done.stdout == "same\n", done.stderr
