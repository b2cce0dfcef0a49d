"""The command line of inductor-audit: arguments in, one view or one JSON document out, and the exit code.

Heavy modules are imported inside the commands, so that `--help` answers at once.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import click

if TYPE_CHECKING:
    from rich.console import RenderableType

    from analyzer.capture import CaptureRequest, CaptureResult
    from analyzer.errors import AnalyzerError
    from analyzer.facts import GraphFacts
    from analyzer.lab import LabRequest, LabResult
    from analyzer.lab.engines import Engine
    from analyzer.model import Run
    from analyzer.views.ablate import LiveArms

FINE, FINDING, FAILED = 0, 1, 2
LAYERS = ("fx", "lowering", "scheduling", "code", "cost")
INTERRUPTED, TERMINATED = 128 + signal.SIGINT, 128 + signal.SIGTERM
PAGED = "inductor-audit.pager"

_Command = TypeVar("_Command", bound=Callable[..., Any])

RUN = click.Path(path_type=Path)
EXIT_CODES = """\b
Exit codes:
  0  fine
  1  a finding: a verdict other than EFFECTIVE, a difference, a broken contract,
     a problem that doctor found, a captured run with a flaw
  2  the tool could not do it: bad usage, unreadable input, failed capture"""


def plain_option(command: _Command) -> _Command:
    """The option for text without colours."""
    help_text = "Print text without colours; the variable NO_COLOR does the same."
    return click.option("--no-color", is_flag=True, help=help_text)(command)


def pager_option(command: _Command) -> _Command:
    """The option for long texts. Whoever prints asks the context for it, so that no command passes it on."""
    help_text = "Show the text in $PAGER, with its colours; nothing changes when output is piped."

    def keep(context: click.Context, _: click.Parameter, wanted: bool) -> None:
        context.meta[PAGED] = wanted

    return click.option("--pager", is_flag=True, expose_value=False, callback=keep, help=help_text)(command)


def reading(command: _Command) -> _Command:
    """The options of every command that only reads."""
    as_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON document on stdout, nothing else.")
    return as_json(plain_option(pager_option(command)))


def page_option(command: _Command) -> _Command:
    """The option for a page beside what is printed."""
    help_text = "Write a page for the browser, too: one file that needs no network."
    return click.option("--html", "page", metavar="FILE", type=RUN, help=help_text)(command)


def _version(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted:
        from importlib.metadata import PackageNotFoundError, version

        try:
            click.echo(f"inductor-audit {version('inductor-audit')}")
        except PackageNotFoundError:
            click.echo("inductor-audit (not installed)")
        context.exit()


class _Commands(click.Group):
    """Commands whose help ends with the exit codes, which are the same for all."""

    def add_command(self, cmd: click.Command, name: str | None = None) -> None:
        """Adds the codes where a command says nothing of its own."""
        cmd.epilog = cmd.epilog or EXIT_CODES
        super().add_command(cmd, name)


def _ablation_names(_: click.Context, __: click.Parameter, typed: str) -> list[str]:
    """The ablations that begin so, for the shell."""
    from analyzer.ablations import ABLATIONS

    return [entry.name for entry in ABLATIONS if entry.name.startswith(typed)]


def _run_named(context: click.Context) -> Path | None:
    """The RUN before the word that is being completed; click leaves it among the rest after `--graph`."""
    named = context.params.get("run") or next(iter(context.args), None)
    return Path(named) if named else None


def _graph_names(context: click.Context, __: click.Parameter, typed: str) -> list[str]:
    """The graphs of the run that was named before, for the shell."""
    from analyzer.completion import graph_names

    path = _run_named(context)
    return graph_names(path, typed) if path is not None else []


def _item_names(context: click.Context, __: click.Parameter, typed: str) -> list[str]:
    """What `explain` can tell about in the run that was named before, for the shell."""
    from analyzer.completion import item_names

    path = _run_named(context)
    return item_names(path, typed, context.params.get("graph")) if path is not None else []


def graph_option(command: _Command) -> _Command:
    """The option for one graph of several."""
    help_text = "Only this compiled graph; names are folder names."
    return click.option("--graph", "name", metavar="NAME", help=help_text, shell_complete=_graph_names)(command)


@click.group(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=EXIT_CODES,
)
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
@click.option(
    "--ablation",
    "ablations",
    metavar="NAME",
    multiple=True,
    help="Ablate this; may be repeated.",
    shell_complete=_ablation_names,
)
@click.option("--set", "settings", metavar="KEY=VALUE", multiple=True, help="Set a torch._inductor.config key.")
@click.option(
    "--baseline-of",
    metavar="NAME",
    multiple=True,
    help="Switch on what this ablation will switch off.",
    shell_complete=_ablation_names,
)
@click.option("--out", metavar="DIR", type=RUN, help="The run folder; a fresh one in inductor-audit-runs by default.")
@click.option("--python", metavar="EXE", help="The interpreter that has your torch; this one by default.")
@click.option("--timeout", metavar="SECONDS", type=click.FloatRange(min=0, min_open=True), help="Then end the script.")
@click.option("--target", "device", metavar="cuda[:GPU]", help="Generate code for a GPU that need not be there.")
@click.option("--profile", metavar="FILE", type=RUN, help="With --target cuda: another device, described in FILE.")
@click.option("--codegen-only", is_flag=True, help="Write kernels without compiling them; the FX graph is run instead.")
@click.option("--ptx", is_flag=True, help="With --target: estimate registers and spills of Triton kernels.")
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
      inductor-audit capture --out base --target cuda:h100 train.py
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
        target=options["device"],
        profile=options["profile"],
        codegen_only=options["codegen_only"],
        ptx=options["ptx"],
    )
    _warn_of_experiments(request)
    result = run_capture(request, ProgressLines(console))
    console.print(CaptureView(result))
    return _capture_code(result)


def _warn_of_experiments(request: CaptureRequest) -> None:
    """Why a capture without a device may fail or be wrong with this torch; asked before anything runs."""
    from analyzer.capture.assumed_device import assumed_device

    device = assumed_device(request)
    for note in device.support.notes if device is not None else ():
        click.echo(f"note: experimental: {note}", err=True)


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
    ours = ("--ablation", "--set", "--baseline-of", "--out", "--target", "--profile", "--codegen-only", "--ptx")
    misplaced = [argument for argument in target[1:] if argument.partition("=")[0] in ours]
    if misplaced:
        click.echo(f"note: {misplaced[0]} goes to {target[0]}; options of capture come before it", err=True)


# ----------------------------------------------------------------------------------------------------------- reading


@cli.command(short_help="Show what became of every op.")
@click.argument("run", metavar="RUN", type=RUN)
@graph_option
@click.option("--why", is_flag=True, help="Tell of each op why it was inlined or realized, and what that costs.")
@click.option("--sort", "order", type=click.Choice(["order", "bytes"]), default="order", help="bytes: largest first.")
@click.option("--full", is_flag=True, help="Leave nothing out of long lists.")
@page_option
@reading
def report(
    run: Path, name: str | None, why: bool, order: str, full: bool, page: Path | None, as_json: bool, no_color: bool
) -> int:
    """Show what became of every op of RUN: its fate, its buffer, its kernel, and how that is known.

    RUN is a folder that `capture` wrote, any torch_compile_debug folder or one inside it, an archive of one (.zip,
    .tar, .tar.gz), or a single artifact file.

    \b
    Examples:
      inductor-audit report torch_compile_debug
      inductor-audit report bug_report.zip --graph model__0_forward_1.0 --why
      inductor-audit report torch_compile_debug --sort bytes --full --pager
    """
    loaded, facts = _analyzed(run, name)

    def view() -> RenderableType:
        from analyzer.views.report import ReportView

        return ReportView(loaded, facts, full, why, largest=order == "bytes")

    def document() -> dict[str, Any]:
        from analyzer.views.json import report_document

        return report_document(loaded, facts)

    if page is not None:
        from analyzer.views.html.report import report_page

        _deliver(report_page(loaded, facts), page)
    _show(view, document, as_json, no_color)
    return FINE if any(graph.nodes or graph.groups or graph.kernels for graph in facts) else FAILED


@cli.command(short_help="Tell all about one op, buffer, kernel or line.")
@click.argument("run", metavar="RUN", type=RUN)
@click.argument("name", metavar="NAME", shell_complete=_item_names)
@click.argument("other", metavar="[NAME2]", required=False, shell_complete=_item_names)
@click.option(
    "--graph", metavar="NAME", help="Only this compiled graph; names are folder names.", shell_complete=_graph_names
)
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
      inductor-audit explain torch_compile_debug model.py:10
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
@click.option("--to", "form", type=click.Choice(["graphml", "dot", "json", "html"]), required=True, help="The format.")
@graph_option
@click.option("--out", metavar="FILE", type=RUN, help="Write there instead of to stdout.")
def export(run: Path, form: str, name: str | None, out: Path | None) -> int:
    """Write RUN as a graph: source lines, ops, FX nodes, buffers, scheduler nodes, groups and kernels.

    html is a page for the browser: one file that shows all layers side by side and needs no network.

    \b
    Examples:
      inductor-audit export torch_compile_debug --to graphml --out run.graphml
      inductor-audit export torch_compile_debug --to html --out run.html
    """
    loaded, facts = _analyzed(run, name)
    if form == "html":
        from analyzer.views.html.report import report_page

        _deliver(report_page(loaded, facts), out)
    else:
        from analyzer.graph import export as export_graphs
        from analyzer.graph import to_networkx

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
@click.option(
    "--ablation",
    metavar="NAME",
    help="What was ablated; by default what ABLATED's manifest says.",
    shell_complete=_ablation_names,
)
@click.option("--full", is_flag=True, help="Leave nothing out of long lists.")
@page_option
@reading
def audit(
    base: Path, ablated: Path, ablation: str | None, full: bool, page: Path | None, as_json: bool, no_color: bool
) -> int:
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
    if page is not None:
        from analyzer.views.html.audit import audit_page

        _deliver(audit_page(result), page)
    _show(lambda: AuditView(result, full), lambda: audit_document(result), as_json, no_color)
    return FINE if result.verdict == Verdict.EFFECTIVE else FINDING


@cli.command(short_help="Show what the compiler decided differently.")
@click.argument("old", metavar="OLD", type=RUN)
@click.argument("new", metavar="NEW", type=RUN)
@click.option(
    "--only", "layer", metavar="LAYER", type=click.Choice(LAYERS), help="Only fx, lowering, scheduling, code or cost."
)
@click.option("--summary", is_flag=True, help="Only settings, surroundings and one line per graph.")
@click.option("--full", is_flag=True, help="Leave nothing out of long lists.")
@page_option
@reading
def diff(
    old: Path, new: Path, layer: str | None, page: Path | None, as_json: bool, no_color: bool, **extent: bool
) -> int:
    """Show what differs between OLD and NEW: settings, then what the compiler decided differently, layer by layer.

    Graphs, ops, buffers, groups and kernels are matched by structure: other numbers, paths, hashes and dates are no
    difference. Exit code 0: equal, 1: different, 2: something that only one run tells could not be compared.

    \b
    Example:
      inductor-audit diff base ablated
    """
    from analyzer.diff.compare import diff_runs
    from analyzer.diff.records import Layer
    from analyzer.load import load_run
    from analyzer.views.diff import DiffView
    from analyzer.views.json import diff_document

    result = diff_runs(load_run(old), load_run(new))
    shown = result.only(Layer(layer)) if layer is not None else result
    if page is not None:
        from analyzer.views.html.diff import diff_page

        _deliver(diff_page(shown), page)
    _show(lambda: DiffView(shown, **extent), lambda: diff_document(shown), as_json, no_color)
    if not shown.equal:
        return FINDING
    return FINE if shown.complete else FAILED


@cli.command(
    short_help="Capture, audit and time all arms of a script.",
    context_settings={"ignore_unknown_options": True},
)
@click.argument("target", metavar="SCRIPT [ARGS]...", nargs=-1, type=click.UNPROCESSED)
@click.option("--script", "scripts", metavar="'SCRIPT ARGS'", multiple=True, help="One more script; may be repeated.")
@click.option(
    "--ablation",
    "ablations",
    metavar="NAME",
    multiple=True,
    help="An arm without this; may be repeated.",
    shell_complete=_ablation_names,
)
@click.option("--table", type=click.Choice(["paper"]), help="The arms of the PyTorch 2 paper's ablation table.")
@click.option("--time", "timed", is_flag=True, help="Measure all arms, in rounds, and compare their results.")
@click.option("--rounds", metavar="N", type=click.IntRange(min=5), default=30, help="Per process; 30 by default.")
@click.option(
    "--processes", metavar="N", type=click.IntRange(min=1), default=5, help="Of --time, per arm; 5 by default."
)
@click.option("--factorial", is_flag=True, help="All subsets of the ablations, and what each is worth; implies --time.")
@click.option("--set", "settings", metavar="KEY=VALUE", multiple=True, help="Set a torch._inductor.config key, always.")
@click.option("--target", "device", metavar="cuda[:GPU]", help="Generate code for a GPU that need not be there.")
@click.option("--profile", metavar="FILE", type=RUN, help="With --target cuda: another device, described in FILE.")
@click.option(
    "--codegen-only/--compile",
    "codegen_only",
    default=None,
    help="Whether kernels are only written; by default they are compiled to be timed, and not otherwise.",
)
@click.option("--out", metavar="DIR", type=RUN, help="Keeps the arms; inductor-audit-runs/ablate-SCRIPT by default.")
@click.option("--python", metavar="EXE", help="The interpreter that has your torch; this one by default.")
@click.option("--timeout", metavar="SECONDS", type=click.FloatRange(min=0, min_open=True), help="Of each arm.")
@click.option("--jobs", metavar="N", type=click.IntRange(min=1), default=1, help="Captures at a time; 1 by default.")
@click.option("--engine", metavar="ENGINE", default="local", help="local, slurm[:CLUSTER] or dask[:ADDRESS].")
@click.option("--engine-option", "engine_options", metavar="KEY=VALUE", multiple=True, help="For slurm: of submitit.")
@click.option("--csv", metavar="FILE", type=RUN, help="Write all numbers to a CSV file.")
@click.option("--latex", metavar="FILE", type=RUN, help="Write a LaTeX table.")
@click.option("--markdown", metavar="FILE", type=RUN, help="Write a Markdown table.")
@click.option("--full", is_flag=True, help="Leave nothing out of long reasons.")
@page_option
@reading
def ablate(target: tuple[str, ...], full: bool, as_json: bool, no_color: bool, **options: Any) -> int:
    """Capture a baseline, an A/A control and an arm per ablation; audit each arm, and with --time measure them.

    A ratio of times is shown as an ablation's effect only if its verdict is EFFECTIVE, its interval excludes 1, and it
    is larger than the noise that the control shows. Finished arms are kept in --out: the same command goes on where it
    was interrupted, and captures anew what has changed. Without --time no kernel is compiled: an audit reads what is
    written.

    Options may stand before or behind SCRIPT; those that are not known here, and all behind `--`, are the script's.

    \b
    Examples:
      inductor-audit ablate train.py --table paper --time
      inductor-audit ablate --factorial --ablation inlining --ablation fusion train.py --epochs 1
      inductor-audit ablate --ablation fusion --script 'a.py --small' --script b.py --csv results.csv
      inductor-audit ablate --target cuda:h100 train.py --table paper
    """
    from analyzer.views.ablate import LabView
    from analyzer.views.json import ablate_document

    request, engine, live = _laboratory(target, no_color, options)
    result = _experiment(request, engine, live)
    _write_tables(result, options)
    _show(lambda: LabView(result, full), lambda: ablate_document(result), as_json, no_color)
    return _lab_code(result)


def _laboratory(
    target: tuple[str, ...], no_color: bool, options: dict[str, Any]
) -> tuple[LabRequest, Engine, LiveArms]:
    from analyzer.capture import parse_setting
    from analyzer.lab import LabRequest, Target, paper_rows, parse_scripts
    from analyzer.lab.engines import make_engine, parse_option
    from analyzer.views.ablate import LiveArms
    from analyzer.views.console import make_console

    cwd = Path.cwd()
    scripts = parse_scripts(target, options["scripts"], cwd)
    names = (*options["ablations"], *(paper_rows() if options["table"] else ()))
    out = cwd / (options["out"] or Path("inductor-audit-runs") / f"ablate-{'-'.join(one.label for one in scripts)}")
    timed = options["timed"] or options["factorial"]
    codegen_only = not timed if options["codegen_only"] is None else options["codegen_only"]
    profile = cwd / options["profile"] if options["profile"] else None
    request = LabRequest(
        scripts,
        names,
        out,
        cwd,
        options["python"] or sys.executable,
        factorial=options["factorial"],
        rounds=options["rounds"] if timed else 0,
        processes=options["processes"],
        jobs=options["jobs"],
        timeout=options["timeout"],
        settings=tuple(parse_setting(text) for text in options["settings"]),
        target=Target(options["device"], profile, codegen_only),
    )
    live = LiveArms(make_console(no_color, stderr=True))
    details = dict(parse_option(text) for text in options["engine_options"])
    return request, make_engine(options["engine"], options["jobs"], out / ".lab", details, live.tick), live


def _experiment(request: LabRequest, engine: Engine, live: LiveArms) -> LabResult:
    from analyzer.lab import experiment

    try:
        with live:
            return experiment(request, engine, live.watch)
    except KeyboardInterrupt:
        click.echo(
            f"interrupted: finished arms are kept in {request.out}; the same command goes on from there", err=True
        )
        raise


def _write_tables(result: LabResult, options: dict[str, Any]) -> None:
    from analyzer.lab import tables

    def page(result: LabResult) -> str:
        from analyzer.views.html.ablate import ablate_page

        return ablate_page(result)

    writers = {"csv": tables.csv_text, "latex": tables.latex_text, "markdown": tables.markdown_text, "page": page}
    for name, write in writers.items():
        if options[name] is not None:
            _deliver(write(result), options[name])


def _lab_code(result: LabResult) -> int:
    """FAILED when no script has a baseline; FINE when every arm is EFFECTIVE and changes no result."""
    from analyzer.lab.verdicts import all_fine, any_baseline

    if not any(any_baseline(script) for script in result.scripts):
        return FAILED
    return FINE if all(all_fine(script) for script in result.scripts) else FINDING


@cli.command(short_help="List the ablations that capture can switch.")
@click.argument("name", metavar="[NAME]", required=False, shell_complete=_ablation_names)
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


@cli.command(short_help="Check promises about a run.")
@click.argument("paths", metavar="[CONTRACTS.toml] RUN", nargs=-1, type=RUN, required=True)
@click.option("--init", is_flag=True, help="Print a contract file that RUN keeps, instead of checking one.")
@click.option("--format", "form", type=click.Choice(["text", "github"]), default="text", help="github: annotations.")
@click.option("--full", is_flag=True, help="Name the kept contracts too; leave no reason out.")
@reading
def check(paths: tuple[Path, ...], init: bool, form: str, full: bool, as_json: bool, no_color: bool) -> int:
    """Check the promises in CONTRACTS.toml against RUN: KEPT, BROKEN or COULD NOT DECIDE.

    \b
      [[contract]]
      name = "softmax stays one kernel"
      graph = "*inference*"                       # all graphs when left out
      fused = ["exp", "sum_1", "div"]
      max_kernel_calls = 1

    \b
    Promises about items: fused, apart, realized, never_realized, never_stored,
      not_recomputed, attributed, kernel_computes = {"KERNEL*" = ["exp"]}
    About each graph: max_kernel_calls, max_groups, max_realized, max_recomputed,
      max_bytes = "12 MB", max_allocated, never_backend = ["fallback"]
    About the run: max_graphs, cold_cache, no_graph_breaks, no_recompiles = true

    An item is an FX node (`exp`, `exp*`), a target (`aten.exp`, `aten.*softmax*`) or a line (`model.py:12`); "all" is
    every op. Exit code 1: something is broken; 2: nothing is, but something could not be decided.

    \b
    Examples:
      inductor-audit check --init good_run > contracts.toml
      inductor-audit check contracts.toml run --format github
    """
    if len(paths) != (1 if init else 2):
        raise click.UsageError("Give a RUN alone with --init, else CONTRACTS.toml and RUN.")
    if init and (as_json or form != "text"):
        raise click.UsageError("--init prints a contract file, which is TOML: leave --json and --format out.")
    from analyzer.contracts import Outcome, contracts_of_run, parse
    from analyzer.contracts import check as run_check
    from analyzer.views.check import CheckView, check_document, github_lines

    contracts = () if init else parse(_text_of(paths[0]), str(paths[0]))
    loaded, facts = _analyzed(paths[-1])
    if init:
        _deliver(contracts_of_run(loaded, facts), None)
        return FINE
    report = run_check(contracts, loaded, facts)
    if form == "github" and not as_json:
        _deliver("".join(f"{line}\n" for line in github_lines(report)), None)
    else:
        _show(lambda: CheckView(report, full), lambda: check_document(report), as_json, no_color)
    return {Outcome.KEPT: FINE, Outcome.BROKEN: FINDING, Outcome.UNDECIDED: FAILED}[report.outcome]


def _text_of(path: Path) -> str:
    """A file that the user wrote."""
    from analyzer.errors import ArtifactError, UsageError
    from analyzer.model import Location

    if path.exists() and not path.is_file():
        raise UsageError(f"cannot read {path}: it is no plain file")
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ArtifactError(Location(str(path), 1), "expected UTF-8 text") from error


@cli.command(short_help="Say why a dump is missing or wrong.")
@click.argument("run", metavar="[RUN]", type=RUN, required=False)
@click.option("--python", metavar="EXE", help="Without RUN: the interpreter to examine; this one by default.")
@click.option("--full", is_flag=True, help="Leave nothing out of long lists.")
@reading
def doctor(run: Path | None, python: str | None, full: bool, as_json: bool, no_color: bool) -> int:
    """Say why RUN has no dump, or a wrong one, and the one thing to do; without RUN, what is amiss with this machine.

    \b
    Examples:
      inductor-audit doctor torch_compile_debug
      inductor-audit doctor --python .venv/bin/python
    """
    from analyzer.doctor import examine_machine, examine_run
    from analyzer.views.doctor import DoctorView, doctor_document

    report = examine_run(run) if run is not None else examine_machine(python or sys.executable)
    _show(lambda: DoctorView(report, full), lambda: doctor_document(report), as_json, no_color)
    return FINDING if report.problems else FINE


@cli.command(short_help="Print the completion script of a shell.")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> int:
    """Print what makes SHELL complete commands, options and ablations.

    \b
    Examples:
      eval "$(inductor-audit completion bash)"                # in ~/.bashrc; zsh likewise
      inductor-audit completion fish > ~/.config/fish/completions/inductor-audit.fish
    """
    from click.shell_completion import get_completion_class

    found = get_completion_class(shell)
    if found is None:
        raise click.UsageError(f"click knows no completion for {shell}")
    click.echo(found(cli, {}, "inductor-audit", "_INDUCTOR_AUDIT_COMPLETE").source())
    return FINE


def _analyzed(path: Path, name: str | None = None) -> tuple[Run, list[GraphFacts]]:
    """The run and the facts about its graphs, or about the one that was named."""
    from analyzer.analyze import analyze
    from analyzer.load import load_run

    run = load_run(path)
    graphs = [graph for graph in run.graphs if name in (None, graph.name, graph.label)]
    if run.graphs and not graphs:
        raise _unknown_graph(name or "", [graph.label for graph in run.graphs])
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
            from analyzer.views.console import make_console, show

            paged = click.get_current_context().meta.get(PAGED, False)
            show(make_console(no_color), view(), click.echo_via_pager if paged else None)
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def main(arguments: list[str] | None = None) -> int:
    """Runs one command and returns its exit code; messages go to stderr.

    As the console script, without arguments of its own, it ends the process.
    """
    if arguments is None:
        signal.signal(signal.SIGTERM, _on_termination)
        _leave(_run(None))
    return _run(arguments)


class _Terminated(KeyboardInterrupt):
    """A time limit of the shell, of CI or of a cluster: what runs on our behalf is ended as after Ctrl-C."""


def _on_termination(*_: object) -> NoReturn:
    raise _Terminated


def _leave(code: int) -> NoReturn:
    """Ends the process at once: the interpreter would take a large run to pieces first, record by record."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _run(arguments: list[str] | None) -> int:
    from analyzer.errors import AnalyzerError

    collects = gc.isenabled()
    gc.disable()  # a command lives for seconds and makes no cycles worth looking for; the search would take a fifth
    try:
        code = cli.main(arguments, prog_name="inductor-audit", standalone_mode=False)
    except click.Abort as error:
        return TERMINATED if isinstance(error.__cause__, _Terminated) else INTERRUPTED
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
