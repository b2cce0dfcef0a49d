"""python call_function.py REQUEST.json: compile and call one function, found by its module's file and its name.

The arguments are literals, and tensors that are described only: size, stride, dtype, device. Their values are made up
here: normally distributed with a fixed seed where the dtype allows, else zeros, which are valid indices.
"""

import ast
import importlib
import importlib.util
import json
import sys
from pathlib import Path

import torch


def module_of(name, file):
    """The module of a file, by its name where that leads to the file, so that its relative imports work."""
    try:
        module = importlib.import_module(name)
        if getattr(module, "__file__", None) and Path(module.__file__).samefile(file):
            return module
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise
    spec = importlib.util.spec_from_file_location(name, file)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def function_of(request):
    """The function itself, also inside a class."""
    found = module_of(request["module"], request["file"])
    for part in request["qualname"].split("."):
        found = getattr(found, part)
    return found


def value_of(told):
    """An argument from its description."""
    kind, content = told
    if kind == "tensor":
        return tensor_of(**content)
    if kind in ("list", "tuple"):
        return {"list": list, "tuple": tuple}[kind](value_of(item) for item in content)
    if kind == "dict":
        return {ast.literal_eval(key): value_of(item) for key, item in content}
    return ast.literal_eval(content)


def tensor_of(size, stride, dtype, device, requires_grad):
    """A tensor with this layout; elements that share memory have one value."""
    kind = getattr(torch, dtype.removeprefix("torch."))
    length = 1 + sum((extent - 1) * step for extent, step in zip(size, stride, strict=True)) if 0 not in size else 0
    valued = kind.is_floating_point or kind.is_complex
    storage = torch.randn(length).to(kind) if valued else torch.zeros(length, dtype=kind)
    return storage.to(device).as_strided(size, stride).requires_grad_(requires_grad)


def tensors_in(result):
    """All tensors of a result that gradients can flow from."""
    if isinstance(result, torch.Tensor):
        yield from (result,) if result.requires_grad else ()
    elif isinstance(result, (list, tuple)):
        for item in result:
            yield from tensors_in(item)
    elif isinstance(result, dict):
        yield from tensors_in(list(result.values()))


def main():
    """Read the request, compile, call."""
    request = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    sys.path[:] = request["path"]
    sys.argv = [request["file"]]
    function = function_of(request)
    torch.manual_seed(0)
    arguments = [value_of(told) for told in request["arguments"]]
    keywords = {name: value_of(told) for name, told in request["keywords"].items()}
    if request["compile"] is not None:
        function = torch.compile(function, **{key: value_of(told) for key, told in request["compile"].items()})
    result = function(*arguments, **keywords)
    if request["backward"]:
        sum(tensor.sum() for tensor in tensors_in(result)).backward()


if __name__ == "__main__":
    main()
