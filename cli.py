"""The command line of inductor-audit: arguments in, one view or one JSON document out, and the exit code.

Heavy modules are imported inside the commands, so that `--help` answers at once.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from rich.console import RenderableType

    from analyzer.capture import CaptureResult
    from analyzer.errors import AnalyzerError
    from analyzer.facts import GraphFacts
    from analyzer.model import Run

FINE, FINDING, FAILED = 0, 1, 2
INTERRUPTED = 130

_Command = TypeVar("_Command", bound=Callable[..., Any])

RUN = click.Path(path_type=Path)
EXIT_CODES = """\b
Exit codes:
  0  fine
  1  a finding: a verdict other than EFFECTIVE, a captured run with a flaw
  2  the tool could not do it: bad usage, unreadable input, failed capture"""


def plain_option(command: _Command) -> _Command:
    """The option for text without colours."""
    help_text = "Print text without colours; the variable NO_COLOR does the same."
    return click.option("--no-color", is_flag=True, help=help_text)(command)


def reading(command: _Command) -> _Command:
    """The options of every command that only reads."""
    as_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON document on stdout, nothing else.")
    return as_json(plain_option(command))


def _version(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted:
        from importlib.metadata import PackageNotFoundError, version

        try:
            click.echo(f"inductor-audit {version('inductor-audit')}")
        except PackageNotFoundError:
            click.echo("inductor-audit (not installed)")
        context.exit()


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}, epilog=EXIT_CODES)
@click.option(
    "--version", is_flag=True, expose_value=False, is_eager=True, callback=_version, help="Print the version."
)
def cli() -> None:
    """Did my torch.compile ablation do anything, and what did Inductor do with each of my ops?

    \b
      inductor-audit capture --out base script.py
      inductor-audit capture --out ablated --ablation inlining script.py
      inductor-audit audit base ablated
    """


# ----------------------------------------------------------------------------------------------------------- capture


class CaptureCommand(click.Command):
    """A command whose options end at SCRIPT, and that remembers whether `--` made it a whole command line."""

    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        """Everything from the first argument on is left as it is: the script's options are its own."""
        given = self._with_end_of_options(args)
        rest = super().parse_args(context, list(given))
        before = len(given) - len(context.params.get("target", ()))
        dashes = before > 0 and given[before - 1] == "--"
        context.params["whole_command"] = dashes and context.params.get("module") is None
        return rest

    def _with_end_of_options(self, args: list[str]) -> list[str]:
        """`-m MODULE` ends the options too, as it does for Python; click has to be told."""
        flags = {name for option in self.params if getattr(option, "is_flag", False) for name in option.opts}
        at = 0
        while at < len(args) and args[at].startswith("-") and args[at] != "--":
            alone = args[at] in flags or "=" in args[at] or (args[at].startswith("-m") and args[at] != "-m")
            end = at + (1 if alone else 2)
            if args[at].startswith(("-m", "--module")):
                return [*args[:end], "--", *args[end:]]
            at = end
        return args


@cli.command(
    cls=CaptureCommand,
    short_help="Run a script and keep what Inductor says.",
    context_settings={"allow_interspersed_args": False},
)
@click.argument("target", metavar="SCRIPT [ARGS]... | -- COMMAND [ARGS]...", nargs=-1, type=click.UNPROCESSED)
@click.option("-m", "--module", metavar="MODULE", help="Run a module, as `python -m` does, instead of SCRIPT.")
@click.option("--ablation", "ablations", metavar="NAME", multiple=True, help="Ablate this; may be repeated.")
@click.option("--set", "settings", metavar="KEY=VALUE", multiple=True, help="Set a torch._inductor.config key.")
@click.option("--baseline-of", metavar="NAME", multiple=True, help="Switch on what this ablation will switch off.")
@click.option("--out", metavar="DIR", type=RUN, help="The run folder; a fresh one in inductor-audit-runs by default.")
@click.option("--python", metavar="EXE", help="The interpreter that has your torch; this one by default.")
@click.option("--timeout", metavar="SECONDS", type=click.FloatRange(min=0, min_open=True), help="Then end the script.")
@plain_option
def capture(target: tuple[str, ...], out: Path | None, no_color: bool, **options: Any) -> int:
    """Run a script and keep what Inductor says of every graph that it compiles.

    The script runs in a process of its own, with its own arguments and output. All caches are off, provenance tracking
    is on, and a hook records what only the live compiler knows. Options go before SCRIPT; all that follows is its own.

    \b
    Examples:
      inductor-audit capture --out base train.py --epochs 1
      inductor-audit capture --out ablated --ablation inlining train.py --epochs 1
      inductor-audit capture --set realize_reads_threshold=0 -m my.package
      inductor-audit capture --out base -- torchrun --nproc-per-node 2 train.py
    """
    from analyzer.capture import CaptureRequest, parse_setting
    from analyzer.capture import capture as run_capture
    from analyzer.views.capture import CaptureView, ProgressLines
    from analyzer.views.console import make_console

    _warn_of_misplaced(target)
    console = make_console(no_color, stderr=True)
    request = CaptureRequest(
        command=_command_line(target, options["python"] or sys.executable, options["module"], options["whole_command"]),
        ablations=options["ablations"],
        settings=tuple(parse_setting(text) for text in options["settings"]),
        baseline_of=options["baseline_of"],
        out=out,
        python=options["python"] or sys.executable,
        timeout=options["timeout"],
    )
    result = run_capture(request, ProgressLines(console))
    console.print(CaptureView(result))
    return _capture_code(result)


def _capture_code(result: CaptureResult) -> int:
    """A run that did not get to its end, or left no graph, is a failed capture; a flaw in a whole one is a finding."""
    kinds = {finding.kind for finding in result.findings} - {"recorder-note"}
    if not result.manifest.graphs or kinds & {"crashed", "timeout", "interrupted"}:
        return FAILED
    return FINDING if kinds else FINE


def _command_line(target: tuple[str, ...], python: str, module: str | None, whole: bool) -> tuple[str, ...]:
    from analyzer.capture import module_command, script_command

    if module is not None:
        return module_command(module, target, python)
    if not target:
        raise click.UsageError("Say what to run: a SCRIPT, -m MODULE, or -- COMMAND.")
    if whole:
        return target
    if not Path(target[0]).exists():
        raise click.UsageError(f"There is no script {target[0]!r} here. Launchers go behind `--`: -- torchrun train.py")
    return script_command(target[0], target[1:], python)


def _warn_of_misplaced(target: tuple[str, ...]) -> None:
    """An option of ours behind the script is the script's own, but rarely meant to be."""
    ours = ("--ablation", "--set", "--baseline-of", "--out")
    misplaced = [argument for argument in target[1:] if argument.partition("=")[0] in ours]
    if misplaced:
        click.echo(f"note: {misplaced[0]} goes to {target[0]}; options of capture come before it", err=True)


# ----------------------------------------------------------------------------------------------------------- reading


@cli.command(short_help="Show what became of every op.")
@click.argument("run", metavar="RUN", type=RUN)
@click.option("--graph", "name", metavar="NAME", help="Only this compiled graph; names are folder names.")
@click.option("--full", is_flag=True, help="Leave nothing out of long lists.")
@reading
def report(run: Path, name: str | None, full: bool, as_json: bool, no_color: bool) -> int:
    """Show what became of every op of RUN: its fate, its buffer, its kernel, and how that is known.

    RUN is a folder that `capture` wrote, any torch_compile_debug folder or one inside it, an archive of one (.zip,
    .tar, .tar.gz), or a single artifact file.

    \b
    Example:
      inductor-audit report torch_compile_debug
    """
    loaded, facts = _analyzed(run, name)

    def view() -> RenderableType:
        from analyzer.views.report import ReportView

        return ReportView(loaded, facts, full)

    def document() -> dict[str, Any]:
        from analyzer.views.json import report_document

        return report_document(loaded, facts)

    _show(view, document, as_json, no_color)
    return FINE if any(graph.nodes or graph.groups or graph.kernels for graph in facts) else FAILED


@cli.command(short_help="Tell all about one op, buffer, kernel or line.")
@click.argument("run", metavar="RUN", type=RUN)
@click.argument("name", metavar="NAME")
@click.argument("other", metavar="[NAME2]", required=False)
@click.option("--graph", "graph", metavar="NAME", help="Only this compiled graph; names are folder names.")
@click.option("--full", is_flag=True, help="Leave nothing out of long lists.")
@reading
def explain(
    run: Path, name: str, other: str | None, graph: str | None, full: bool, as_json: bool, no_color: bool
) -> int:
    """Tell all about NAME: what it came from, what it became, and why; of two names, why they are (not) one kernel.

    NAME is a buffer, op, group, FX node, kernel, pre-grad op, or FILE:LINE of the program.

    \b
    Examples:
      inductor-audit explain torch_compile_debug buf3
      inductor-audit explain torch_compile_debug model.py:17
      inductor-audit explain torch_compile_debug relu mm
    """
    from analyzer.explain import explain as explain_one
    from analyzer.explain import explain_pair
    from analyzer.views.explain import ExplainView, PairView, explain_document, pair_document

    _, facts = _analyzed(run, graph)
    if other is None:
        told = explain_one(facts, name)
        _show(lambda: ExplainView(told, full), lambda: explain_document(told), as_json, no_color)
    else:
        pairs = explain_pair(facts, name, other)
        _show(lambda: PairView(pairs, full), lambda: pair_document(pairs), as_json, no_color)
    return FINE


@cli.command(short_help="Write the graph of all layers for other tools.")
@click.argument("run", metavar="RUN", type=RUN)
@click.option("--to", "form", type=click.Choice(["graphml", "dot", "json"]), required=True, help="The format.")
@click.option("--graph", "name", metavar="NAME", help="Only this compiled graph; names are folder names.")
@click.option("--out", metavar="FILE", type=RUN, help="Write there instead of to stdout.")
def export(run: Path, form: str, name: str | None, out: Path | None) -> int:
    """Write RUN as a graph: source lines, ops, FX nodes, buffers, scheduler nodes, groups and kernels.

    \b
    Example:
      inductor-audit export torch_compile_debug --to graphml --out run.graphml
    """
    from analyzer.graph import export as export_graphs
    from analyzer.graph import to_networkx

    _, facts = _analyzed(run, name)
    _deliver(export_graphs([to_networkx(graph) for graph in facts], form), out)
    return FINE if facts else FAILED


def _deliver(text: str, out: Path | None) -> None:
    """To a file, or to stdout; a reader may close the pipe early."""
    from analyzer.errors import UsageError

    if out is not None:
        try:
            out.write_text(text, encoding="utf-8")
        except OSError as error:
            raise UsageError(f"cannot write {out}: {error.strerror}") from error
        return
    try:
        click.echo(text, nl=False)
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@cli.command(short_help="Judge whether an ablation acted.")
@click.argument("base", metavar="BASE", type=RUN)
@click.argument("ablated", metavar="ABLATED", type=RUN)
@click.option("--ablation", metavar="NAME", help="What was ablated; by default what ABLATED's manifest says.")
@click.option("--full", is_flag=True, help="Leave nothing out of long lists.")
@reading
def audit(base: Path, ablated: Path, ablation: str | None, full: bool, as_json: bool, no_color: bool) -> int:
    """Judge whether the ablation that ABLATED stands for did to BASE what its name says, and show the evidence.

    \b
    Example:
      inductor-audit audit base ablated --ablation realize-thresholds
    """
    from analyzer.audit import audit as run_audit
    from analyzer.load import load_run
    from analyzer.verdict import Verdict
    from analyzer.views.audit import AuditView
    from analyzer.views.json import audit_document

    result = run_audit(load_run(base), load_run(ablated), ablation)
    _show(lambda: AuditView(result, full), lambda: audit_document(result), as_json, no_color)
    return FINE if result.verdict == Verdict.EFFECTIVE else FINDING


@cli.command(short_help="List the ablations that capture can switch.")
@click.argument("name", metavar="[NAME]", required=False)
@reading
def ablations(name: str | None, as_json: bool, no_color: bool) -> int:
    """List the ablations that `capture` can switch, or tell all about one.

    \b
    Example:
      inductor-audit ablations realize-thresholds
    """
    from analyzer.ablations import ABLATIONS, find
    from analyzer.views.ablations import AblationsView, AblationView
    from analyzer.views.json import ablations_document

    chosen = ABLATIONS if name is None else (find(name),)
    view = AblationsView(chosen) if name is None else AblationView(chosen[0])
    _show(lambda: view, lambda: ablations_document(chosen), as_json, no_color)
    return FINE


def _analyzed(path: Path, name: str | None = None) -> tuple[Run, list[GraphFacts]]:
    """The run and the facts about its graphs, or about the one that was named."""
    from analyzer.analyze import analyze
    from analyzer.load import load_run

    run = load_run(path)
    graphs = [graph for graph in run.graphs if name in (None, graph.name)]
    if run.graphs and not graphs:
        raise _unknown_graph(name or "", [graph.name for graph in run.graphs])
    return run, [analyze(graph) for graph in graphs]


def _unknown_graph(name: str, known: list[str]) -> AnalyzerError:
    from difflib import get_close_matches

    from analyzer.errors import UsageError

    near = get_close_matches(name, known, n=3, cutoff=0.4) or known[:5]
    return UsageError(f"there is no graph named {name!r} in this run", f"choose from: {', '.join(near)}")


# ------------------------------------------------------------------------------------------------- printing, errors


def _show(
    view: Callable[[], RenderableType], document: Callable[[], dict[str, Any]], as_json: bool, no_color: bool
) -> None:
    """Prints the one or the other. A reader that closes the pipe early (`| head`) has what it wanted."""
    try:
        if as_json:
            from analyzer.views.json import dumps

            click.echo(dumps(document()))
        else:
            from analyzer.views.console import make_console

            make_console(no_color).print(view())
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def main(arguments: list[str] | None = None) -> int:
    """The console script: runs one command and returns its exit code; messages go to stderr."""
    from analyzer.errors import AnalyzerError

    collects = gc.isenabled()
    gc.disable()  # a command lives for seconds and makes no cycles worth looking for; the search would take a fifth
    try:
        code = cli.main(arguments, prog_name="inductor-audit", standalone_mode=False)
    except click.Abort:
        return INTERRUPTED
    except click.ClickException as error:
        error.show()
        return FAILED
    except AnalyzerError as error:
        _tell(error)
        return FAILED
    finally:
        if collects:
            gc.enable()
    return code if isinstance(code, int) else FINE


def _tell(error: AnalyzerError) -> None:
    from analyzer.views.console import make_console
    from analyzer.views.error import ErrorView

    make_console(stderr=True).print(ErrorView(error))


if __name__ == "__main__":
    sys.exit(main())
