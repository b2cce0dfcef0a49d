"""The pages in a real browser: what lights up, what the keyboard reaches, what fits a phone, what can be read.

Needs Chromium and its driver (Debian: `apt-get install chromium chromium-driver`); skips without them.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from analyzer.analyze import analyze
from analyzer.diff.compare import diff_runs
from analyzer.facts import BufferFact, Fate, GraphFacts, GroupFact, KernelFact, NodeFact
from analyzer.load import load_run
from analyzer.model import CompiledGraph, FxNode, Run, SourceSite
from analyzer.verdict import AuditResult, GraphAudit, Rung, RungName, Verdict
from analyzer.views.html.audit import audit_page
from analyzer.views.html.diff import diff_page
from analyzer.views.html.report import report_page

selenium = pytest.importorskip("selenium.webdriver", reason="no selenium: pip install selenium")
Keys = selenium.Keys

pytestmark = pytest.mark.browser

MLP = Path(__file__).parent.parent / "fixtures/runs/cpu-2.13/c11_mlp_train"
DIFFERENT = [
    Path(__file__).parent.parent / "fixtures/ablations/cpu-2.13" / arm / "softmax" for arm in ("baseline", "fusion")
]
DESKTOP, PHONE = (1280, 900), (390, 844)
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)

LIT = (
    "return [...document.querySelectorAll('.graph:not([hidden]) li.lit')].map(row => row.firstElementChild.textContent)"
)
OVERFLOWS = "return document.documentElement.scrollWidth > window.innerWidth"

# Every visible text and its ratio of contrast (WCAG 2) with the nearest background that is painted behind it.
CONTRASTS = """
const channels = (color) => {
  const canvas = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
  canvas.fillStyle = color; canvas.fillRect(0, 0, 1, 1);
  return [...canvas.getImageData(0, 0, 1, 1).data];
};
const light = ([r, g, b]) => [r, g, b].map((c) => c / 255)
  .map((c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
  .reduce((sum, c, at) => sum + c * [0.2126, 0.7152, 0.0722][at], 0);
const behind = (element) => {
  for (; element; element = element.parentElement) {
    const [r, g, b, a] = channels(getComputedStyle(element).backgroundColor);
    if (a === 255) return [r, g, b];
  }
  return [255, 255, 255];
};
const found = [];
for (const element of document.querySelectorAll("body *:not(svg *)")) {
  const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
  if (!own || !element.checkVisibility() || ["SCRIPT", "STYLE", "TITLE", "OPTION"].includes(element.tagName)) continue;
  const [one, other] = [light(channels(getComputedStyle(element).color)), light(behind(element))];
  const ratio = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
  found.push([ratio, element.tagName + "." + element.className + ": " + element.textContent.trim().slice(0, 40)]);
}
return found;
"""


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    service = shutil.which("chromedriver")
    if browser is None or service is None:
        pytest.skip("no browser: install chromium and chromium-driver")
    options = selenium.ChromeOptions()
    options.binary_location = browser
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    started = selenium.Chrome(options=options, service=selenium.ChromeService(service))
    yield started
    started.quit()


class Browser:
    """A browser with one page open."""

    def __init__(self, driver: Any, folder: Path) -> None:
        self.driver = driver
        self.folder = folder

    def open(self, page: str, size: tuple[int, int] = DESKTOP, scheme: str = "light") -> Browser:
        file = self.folder / "page.html"
        file.write_text(page, encoding="utf-8")
        width, height = size
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
        self.driver.get(file.as_uri())
        self.run("localStorage.clear()")
        return self

    def run(self, script: str, *arguments: object) -> Any:
        return self.driver.execute_script(script, *arguments)

    def row(self, name: str, kind: str) -> Any:
        """The row of a name, in the graph that is shown."""
        rows = self.driver.find_elements("css selector", f".graph:not([hidden]) [data-kind='{kind}'] li")
        return next(row for row in rows if row.find_element("tag name", "b").text == name)

    def lit(self) -> set[str]:
        return set(self.run(LIT))

    def press(self, *keys: str) -> None:
        for key in keys:
            self.driver.switch_to.active_element.send_keys(key)

    def focused(self) -> str:
        return str(self.run("return document.activeElement.firstElementChild?.textContent ?? ''"))

    def complaints(self) -> list[str]:
        return [entry["message"] for entry in self.driver.get_log("browser")]


@pytest.fixture
def browser(driver: Any, tmp_path: Path) -> Browser:
    driver.get_log("browser")
    return Browser(driver, tmp_path)


@pytest.fixture
def sin_cos_page(sin_cos: GraphFacts, cold_run: Run) -> str:
    return report_page(cold_run, [sin_cos])


@pytest.fixture(scope="module")
def mlp_page() -> str:
    run = load_run(MLP)
    return report_page(run, [analyze(graph) for graph in run.graphs])


PATH = {"demo.py:8", "cos", "buf0", "op0", "cpp_fused_cos_sin_0"}


def test_clicking_an_op_lights_its_path_up_to_the_kernel(browser: Browser, sin_cos_page: str) -> None:
    browser.open(sin_cos_page).row("cos", "FX node").click()
    assert browser.lit() == PATH
    details = browser.driver.find_element("css selector", ".details").text
    assert "FX node cos" in details
    assert "aten.cos.default" in details
    assert browser.row("cos", "FX node").get_attribute("aria-selected") == "true"
    assert browser.complaints() == []


def test_pointing_lights_up_until_something_is_pinned(browser: Browser, sin_cos_page: str) -> None:
    browser.open(sin_cos_page)
    point = selenium.ActionChains(browser.driver)
    point.move_to_element(browser.row("cos", "FX node")).perform()
    assert browser.lit() == PATH
    browser.row("sin", "FX node").click()
    point.move_to_element(browser.row("cos", "FX node")).perform()
    assert "cos" not in browser.lit()
    browser.driver.find_element("css selector", ".clear").click()
    assert "buf0" not in browser.lit()


def test_all_of_it_can_be_done_with_the_keyboard(browser: Browser, sin_cos_page: str) -> None:
    browser.open(sin_cos_page)
    browser.press("/")
    browser.driver.switch_to.active_element.send_keys("aten.cos")
    assert browser.driver.find_element("css selector", ".found").text == "1 found"
    browser.press(Keys.ENTER)
    assert browser.focused() == "cos"
    assert browser.lit() == PATH
    browser.press(Keys.ARROW_RIGHT)
    assert browser.focused() == "buf0"
    browser.press(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT, Keys.ENTER)
    assert browser.focused() == "cpp_fused_cos_sin_0"
    assert browser.lit() == PATH | {"demo.py:9", "sin"}
    outline = browser.run("return getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"
    browser.press(Keys.ESCAPE)
    assert browser.driver.find_element("css selector", ".details").text == "Nothing chosen yet."


def test_tab_stops_once_per_column(browser: Browser, mlp_page: str) -> None:
    browser.open(mlp_page)
    browser.run("document.querySelector('.graph .only').focus()")
    columns = []
    for _ in range(12):
        browser.press(Keys.TAB)
        kind = browser.run("return document.activeElement.closest('.column')?.dataset.kind")
        columns += [kind] if kind else []
    assert columns == list(dict.fromkeys(columns))
    assert {"FX node", "buffer", "group", "kernel"} <= set(columns)


def test_a_box_of_the_picture_pins_its_group(browser: Browser, mlp_page: str) -> None:
    browser.open(mlp_page)
    box = browser.driver.find_element("css selector", ".graph:not([hidden]) .box")
    name = box.find_element("css selector", "text").text
    box.click()
    assert name in browser.lit()
    assert "lit" in (box.get_attribute("class") or "")


def test_a_name_in_the_ledger_leads_to_its_row(browser: Browser, mlp_page: str) -> None:
    browser.open(mlp_page)
    name = browser.driver.find_element("css selector", "#g0 .ledger .go[data-n]")
    wanted = name.text
    browser.run("arguments[0].focus()", name)
    browser.press(Keys.ENTER)
    assert browser.focused() == wanted
    assert wanted in browser.lit()
    assert browser.run("return document.activeElement.getBoundingClientRect().top < innerHeight")


def test_the_ledger_says_what_is_recomputed_and_why(browser: Browser, mlp_page: str) -> None:
    browser.open(mlp_page).driver.find_element("css selector", "#graph option:nth-child(2)").click()
    tables = browser.driver.find_elements("css selector", "#g1 .ledger table")
    told = {table.find_element("tag name", "caption").get_attribute("textContent"): table.text for table in tables}
    assert {"Moved most", "Recomputed", "Inlined", "Realized"} <= set(told)
    assert "relu inlined into buf3 and buf4 (recomputed 2×)" in told["Recomputed"]
    assert "users read it" in told["Recomputed"]


def test_another_graph_can_be_chosen(browser: Browser, mlp_page: str) -> None:
    browser.open(mlp_page)
    browser.driver.find_element("css selector", "#graph option:nth-child(2)").click()
    shown = browser.run("return [...document.querySelectorAll('.graph')].map(section => section.checkVisibility())")
    assert shown == [False, True]
    browser.driver.find_element("css selector", "#g1 [data-kind=kernel] li").click()
    assert len(browser.lit()) > 2


def test_the_path_alone_can_be_shown(browser: Browser, mlp_page: str) -> None:
    browser.open(mlp_page).driver.find_element("css selector", "#g0 [data-kind=buffer] li").click()
    browser.driver.find_element("css selector", "#g0 .only").click()
    rows = browser.run(
        "return [...document.querySelectorAll('#g0 li[role]')].filter(row => row.checkVisibility()).length"
    )
    assert rows == len(browser.run(LIT)) < 20


HOSTILE = "</script><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"


def test_a_hostile_name_stays_text(browser: Browser, sin_cos: GraphFacts) -> None:
    node = replace(sin_cos.nodes[1], node=replace(sin_cos.nodes[1].node, name=HOSTILE, target=HOSTILE))
    buffer = replace(sin_cos.buffers[0], origins=(HOSTILE, "sin"), ir_class=HOSTILE)
    facts = replace(sin_cos, nodes=(node, *sin_cos.nodes[2:]), buffers=(buffer,))
    browser.open(report_page(Run(HOSTILE, (facts.graph,), notes=(HOSTILE,)), [facts]))
    browser.driver.find_element("css selector", "[data-kind='FX node'] li").click()
    assert HOSTILE in browser.driver.find_element("css selector", ".details").text
    assert "owned" not in browser.driver.title.removeprefix(HOSTILE)
    assert browser.run("return [document.images.length, document.scripts.length]") == [0, 2]
    assert browser.complaints() == []


def test_the_policy_stops_script_that_got_in(browser: Browser, sin_cos_page: str) -> None:
    """A second lock: were text ever printed as it is, the browser would not run it."""
    injected = sin_cos_page.replace("<main", "<script>document.title='owned'</script><img src=x onerror=1><main", 1)
    assert browser.open(injected).driver.title != "owned"
    assert any("Content Security Policy" in message for message in browser.complaints())


def audit() -> AuditResult:
    rungs = tuple(Rung(name, held) for name, held in zip(RungName, (True, True, False, None, None), strict=True))
    graphs = (GraphAudit(f"model__{verdict}", verdict, "Because of that.", "fusion", rungs) for verdict in Verdict)
    return AuditResult("inlining", Verdict.INERT, None, tuple(graphs), ("a note",))


@pytest.mark.parametrize("size", [DESKTOP, PHONE, (320, 640)], ids=["desktop", "phone", "small"])
def test_nothing_is_wider_than_the_window(browser: Browser, mlp_page: str, size: tuple[int, int]) -> None:
    assert not browser.open(mlp_page, size).run(OVERFLOWS)
    browser.driver.find_element("css selector", "#g0 [data-kind=kernel] li").click()
    assert not browser.run(OVERFLOWS)
    for page in (audit_page(audit()), diff_page(diff_runs(*map(load_run, DIFFERENT)))):
        assert not browser.open(page, size).run(OVERFLOWS)


def test_a_phone_shows_the_path_of_what_was_tapped(browser: Browser, mlp_page: str) -> None:
    browser.open(mlp_page, PHONE).driver.find_element("css selector", "#g0 [data-kind=group] li").click()
    rows = browser.run(
        "return [...document.querySelectorAll('#g0 li[role]')].filter(row => row.checkVisibility()).length"
    )
    assert rows == len(browser.run(LIT))
    assert browser.driver.find_element("css selector", "#g0 .clear").is_displayed()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_text_has_contrast(browser: Browser, mlp_page: str, scheme: str) -> None:
    """WCAG AA: 4.5 for text."""
    browser.open(mlp_page, scheme=scheme).driver.find_element("css selector", "#g0 [data-kind=kernel] li").click()
    time.sleep(0.2)  # rows fade in
    texts = browser.run(CONTRASTS)
    for page in (audit_page(audit()), diff_page(diff_runs(*map(load_run, DIFFERENT)))):
        texts += browser.open(page, scheme=scheme).run(CONTRASTS)
    assert len(texts) > 100
    assert [text for ratio, text in texts if ratio < 4.5] == []


def test_the_theme_follows_the_system_until_somebody_chooses(browser: Browser, sin_cos_page: str) -> None:
    paper = "return getComputedStyle(document.body).backgroundColor"
    light = browser.open(sin_cos_page).run(paper)
    dark = browser.open(sin_cos_page, scheme="dark").run(paper)
    assert light != dark
    button = browser.driver.find_element("id", "theme")
    assert button.text == "Theme: auto"
    button.click()
    assert (button.text, browser.run(paper)) == ("Theme: light", light)
    button.click()
    assert (button.text, browser.run(paper)) == ("Theme: dark", dark)


# -------------------------------------------------------------------------------------------------------- a large model

LAYERS, NODES, BUFFERS, GROUPS = 48, 66, 20, 14


def large() -> GraphFacts:
    """As many rows as a transformer of 48 layers has: 3,168 nodes, 960 buffers, 672 groups, 14 kernels."""
    site = [SourceSite("/home/user/model.py", 10 + line, "forward", f"x = x + {line}") for line in range(30)]
    nodes, buffers, groups = [], [], []
    for at in range(LAYERS):
        for n in range(NODES):
            name, buffer = f"layer_{at}_node_{n}", f"buf{at * BUFFERS + n % BUFFERS}"
            node = FxNode(name, "call_function", "aten.add.Tensor", source=site[n % 30])
            own = n < BUFFERS
            fate = Fate.REALIZED if own else Fate.INLINED
            nodes.append(NodeFact(node, fate, buffer if own else None, () if own else (buffer,)))
        for b in range(BUFFERS):
            group = f"op{at}_{b % GROUPS}"
            origins = tuple(f"layer_{at}_node_{n}" for n in range(b, NODES, BUFFERS))
            buffers.append(
                BufferFact(f"buf{at * BUFFERS + b}", f"op{b}", "ComputedBuffer", origins=origins, group=group)
            )
        for g in range(GROUPS):
            groups.append(GroupFact(f"op{at}_{g}", "FusedSchedulerNode", (f"op{g}",), kernel=f"cpp_fused_{g}"))
    kernels = [
        KernelFact(f"cpp_fused_{g}", "cpp", calls=LAYERS, groups=tuple(f"op{at}_{g}" for at in range(LAYERS)))
        for g in range(GROUPS)
    ]
    graph = CompiledGraph("model__0_inference_0.0", "inference", "large")
    return GraphFacts(graph, tuple(nodes), tuple(buffers), (), tuple(groups), tuple(kernels))


def busy(browser: Browser) -> float:
    """Seconds that the page's thread has computed: other programs of this machine do not count."""
    metrics = browser.driver.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
    return float(next(metric["value"] for metric in metrics if metric["name"] == "TaskDuration"))


def test_a_model_of_48_layers_opens_and_answers_at_once(browser: Browser) -> None:
    facts = large()
    page = report_page(Run("large", (facts.graph,)), [facts])
    assert len(page.encode()) < 5_000_000
    browser.driver.execute_cdp_cmd("Performance.enable", {"timeDomain": "threadTicks"})
    browser.open("")
    started = busy(browser)
    browser.open(page).driver.find_element("css selector", "[data-kind=kernel] li").click()
    lit = len(browser.run(LIT))
    opened = busy(browser)
    browser.driver.find_element("css selector", ".find").send_keys("node_65")
    found = browser.driver.find_element("css selector", ".found").text
    answered = busy(browser)
    # Of each layer one group, its 2 buffers and their 7 nodes, from 6 lines; and the kernel itself.
    assert (lit, found) == (48 * (1 + 2 + 7) + 6 + 1, "48 found")
    assert opened - started < 2
    assert answered - opened < 2
