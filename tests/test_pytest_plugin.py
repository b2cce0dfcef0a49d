"""The pytest fixture: what a test author can say, what is refused, and whole tests that compile."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import sysconfig
import types
import venv
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from analyzer.errors import ArtifactError, UsageError
from analyzer.testing.auditor import Audited
from analyzer.testing.by_name import CALLER, described, request_of

ROOT = Path(__file__).parent.parent
CAPTURED = ROOT / "fixtures/captured"
needs_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs torch")


def at_the_top(x: int, scale: float = 1.0) -> float:
    return x * scale


class Model:
    @staticmethod
    def forward(x: int) -> int:
        return x


unnamed = lambda x: x  # noqa: E731


# --------------------------------------------------------------------------------------------- what a function can be


@pytest.mark.parametrize(("function", "name"), [(at_the_top, "at_the_top"), (Model.forward, "Model.forward")])
def test_functions_travel_by_name(function: Callable[..., object], name: str) -> None:
    request = request_of(function, (1, [2.5, None]), {"scale": (True, "a")}, {"dynamic": True}, backward=True)
    assert (request["module"], request["qualname"], request["file"]) == (__name__, name, __file__)
    assert request["arguments"] == [["literal", "1"], ["list", [["literal", "2.5"], ["literal", "None"]]]]
    assert request["keywords"] == {"scale": ["tuple", [["literal", "True"], ["literal", "'a'"]]]}
    assert request["compile"] == {"dynamic": ["literal", "True"]}
    assert json.loads(json.dumps(request)) == request


def test_what_cannot_be_found_by_name_is_refused() -> None:
    def local(x: int) -> int:
        return x

    impostor = types.FunctionType(at_the_top.__code__, globals(), "at_the_top")
    impostor.__module__, impostor.__qualname__ = __name__, "at_the_top"
    for function in (local, unnamed, Model, Model().forward.__call__, impostor):
        with pytest.raises(UsageError) as raised:
            request_of(function)
        assert raised.value.hint


@pytest.mark.parametrize("value", [object(), {1, 2}, [object()], {"a": object()}, at_the_top])
def test_arguments_that_cannot_be_written_down_are_refused(value: object) -> None:
    with pytest.raises(UsageError, match="argument 1 is a"):
        described(value, "argument 1")


REBUILT = {
    "torch.zeros(4, 3).t()": "value.shape == (3, 4) and value.stride() == (1, 3) and value.std() > 0.1",
    "torch.zeros(3, 1).expand(3, 5)": "value.stride() == (1, 0) and (value[:, 0] == value[:, 4]).all()",
    "torch.full((3,), 7)": "value.dtype == torch.int64 and not value.any()",
    "torch.ones(0, 3, dtype=torch.bool)": "value.shape == (0, 3) and value.dtype == torch.bool",
    "torch.zeros(2, dtype=torch.bfloat16, requires_grad=True)": "value.requires_grad and value.is_leaf",
}


@pytest.mark.live
def test_tensors_travel_by_their_layout() -> None:
    torch = pytest.importorskip("torch")
    given = torch.zeros(4, 3, dtype=torch.float64, requires_grad=True).t()
    assert described(given, "x") == [
        "tensor",
        {"size": [3, 4], "stride": [1, 3], "dtype": "torch.float64", "device": "cpu", "requires_grad": True},
    ]
    with pytest.raises(UsageError):
        described(torch.eye(3).to_sparse(), "x")
    script = [f"import sys, json, torch; sys.path.insert(0, {str(CALLER.parent)!r}); import call_function as c"]
    for make, check in REBUILT.items():
        told = json.dumps(described(eval(make, {"torch": torch}), "x"))
        script += [f"value = c.value_of(json.loads({told!r}))", f"assert {check}, value"]
    subprocess.run([sys.executable, "-c", "\n".join(script)], check=True, timeout=120)


# --------------------------------------------------------------------------------------------- what can be asserted


def test_fates_kernels_and_promises_of_a_captured_run() -> None:
    result = Audited(CAPTURED / "sin_cos_thresholds")
    assert result.fates == {"cos": "inlined", "sin": "realized"}
    assert result.kernels == ["cpp_fused_cos_sin_0"]
    assert result.findings == ()
    result.check(fused=["cos", "sin"], max_kernel_calls=1, attributed="all")


def test_a_broken_promise_fails_with_the_reason_and_the_run() -> None:
    result = Audited(CAPTURED / "sin_cos_thresholds")
    with pytest.raises(AssertionError) as raised:
        result.check(realized=["cos"], max_groups=5)
    first = str(raised.value).splitlines()[0]
    assert (
        "cos is inlined into buf0, in kernel cpp_fused_cos_sin_0: it has a single user; a hint proposed a buf" in first
    )
    assert "max_groups" not in str(raised.value)
    assert str(result.folder) in str(raised.value)


def test_what_cannot_be_decided_fails_too() -> None:
    with pytest.raises(AssertionError, match="nothing is named 'tan'"):
        Audited(CAPTURED / "sin_cos_thresholds").check(fused=["tan", "sin"])


def test_a_promise_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ArtifactError, match="there is no promise 'fuse'"):
        Audited(CAPTURED / "sin_cos_thresholds").check(fuse=["cos"])


def test_a_contract_file(tmp_path: Path) -> None:
    text = '[[contract]]\nname = "values are kept"\nrealized = ["cos", "sin"]\n'
    (tmp_path / "c.toml").write_text(text, encoding="utf-8")
    Audited(CAPTURED / "sin_cos_inlining").check_file(tmp_path / "c.toml")
    with pytest.raises(AssertionError, match="cos is inlined"):
        Audited(CAPTURED / "sin_cos_thresholds").check_file(tmp_path / "c.toml")


def test_the_plugin_costs_a_session_nothing() -> None:
    imports = "import analyzer.testing.plugin"
    script = f"import sys, pytest; before = set(sys.modules); {imports}; print(set(sys.modules) - before)"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert set(eval(done.stdout)) <= {"analyzer", "analyzer.testing", "analyzer.testing.plugin"}


# ------------------------------------------------------------------------------------------------------- whole tests


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment with this project's wheel in it, and only its dependencies from this one."""
    folder = tmp_path_factory.mktemp("installed")
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir"]
    subprocess.run([*build, str(folder), str(ROOT)], check=True, timeout=300)
    venv.create(folder / "venv", symlinks=True)
    python = folder / "venv" / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    ask = [str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    own = Path(subprocess.run(ask, check=True, capture_output=True, text=True).stdout.strip())
    zipfile.ZipFile(next(folder.glob("*.whl"))).extractall(own)
    # A folder named in a .pth file has its own .pth files ignored: an editable install of this project stays out.
    (own / "dependencies.pth").write_text(f"{sysconfig.get_path('purelib')}\n{sysconfig.get_path('platlib')}\n")
    return python


INSTALLED = """
from pathlib import Path
import analyzer
from analyzer.testing.auditor import Audited, Auditor

RUN = Audited(Path({run!r}))

def test_it_is_the_installed_one(inductor_audit):
    assert isinstance(inductor_audit, Auditor)
    assert {root!r} not in analyzer.__file__

def test_fate():
    assert RUN.fates["cos"] == "realized"

def test_promise():
    RUN.check(realized=["cos"])
"""


def test_an_installed_plugin_is_found_and_explains_what_fails(installed: Path, tmp_path: Path) -> None:
    text = INSTALLED.format(run=str(CAPTURED / "sin_cos_thresholds"), root=str(ROOT))
    (tmp_path / "test_installed.py").write_text(text, encoding="utf-8")
    plain = {key: value for key, value in os.environ.items() if not key.startswith(("PYTEST", "PYTHON"))}
    done = subprocess.run(
        [str(installed), "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(tmp_path), str(tmp_path)],
        cwd=tmp_path,
        env=plain,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert "2 failed, 1 passed" in done.stdout, done.stdout + done.stderr
    because = "cos is inlined into buf0, in kernel cpp_fused_cos_sin_0: it has a single user"
    assert f"assert 'inlined' == 'realized'\nE         {because}" in done.stdout
    assert f"realized broken: model__0_inference_0.0: {because}" in done.stdout


LAYERS = """
import torch

def layer(x, scale=1.0):
    return torch.sin(torch.cos(x)) * scale

def loss(x):
    return x.exp().sum()

def trains():
    model = torch.compile(torch.nn.Linear(4, 4))
    model(torch.randn(2, 4)).sum().backward()
"""
TESTS = """
import pytest, torch
from layers import layer, loss, trains

def test_one_kernel(inductor_audit):
    result = inductor_audit(layer, torch.zeros(1000), kwargs={"scale": 2.0})
    assert result.fates["cos"] == "inlined"
    result.check(fused=["cos", "sin"], max_kernel_calls=1, cold_cache=True)

def test_backward_and_ablation(inductor_audit):
    result = inductor_audit(loss, torch.ones(10, 10, requires_grad=True), backward=True, ablations=["inlining"])
    assert [facts.graph.kind for facts in result.graphs] == ["forward", "backward"]
    result.check(realized=["exp"], graph="*forward*")

def test_compiles_itself(inductor_audit):
    assert len(inductor_audit(trains, compile=False).graphs) == 2

def test_a_script(inductor_audit, tmp_path):
    script = tmp_path / "script.py"
    script.write_text("import sys, torch; torch.compile(torch.sin)(torch.ones(int(sys.argv[1])))")
    assert inductor_audit(script, 16).fates == {"sin": "realized"}

def test_breaks(inductor_audit):
    inductor_audit(layer, torch.zeros(8)).check(max_kernel_calls=0)

def test_raises(inductor_audit):
    inductor_audit(layer, "no tensor")
"""


@needs_torch
@pytest.mark.live
def test_a_test_file_that_uses_the_fixture(installed: Path, tmp_path: Path) -> None:
    """Four tests pass, one fails with a broken promise, one with the child's own error."""
    (tmp_path / "layers.py").write_text(LAYERS, encoding="utf-8")
    (tmp_path / "test_layers.py").write_text(TESTS, encoding="utf-8")
    done = subprocess.run(
        [str(installed), "-m", "pytest", "-q", "--tb=short", "--rootdir", str(tmp_path), str(tmp_path)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )
    assert "2 failed, 4 passed" in done.stdout, done.stdout
    assert "max_kernel_calls broken: model__0_inference_0.0: kernel calls: 1, at most 0 promised" in done.stdout
    assert "must be Tensor, not str" in done.stdout
