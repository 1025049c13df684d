#!/usr/bin/env python3
"""The page of hone explain --html, looked at in a real browser (Chromium, headless, without a network)."""
import html.parser
import os
import shutil
import subprocess
import unittest

import command
from command import LLAMA, CommandTest

SECONDS = 120
VOID = {"meta", "link", "br", "input", "img"}


class Element:
    def __init__(self, tag, attributes, parent):
        self.tag, self.attributes, self.parent, self.children = tag, dict(attributes), parent, []

    @property
    def classes(self):
        return set((self.attributes.get("class") or "").split())

    @property
    def text(self):
        return "".join(child if isinstance(child, str) else child.text for child in self.children)

    def find(self, tag=None, *classes, **attributes):
        """All elements below with that tag, these classes and attributes."""
        out = []
        for child in self.children:
            if isinstance(child, str):
                continue
            wanted = {name.replace("_", "-"): value for name, value in attributes.items()}
            if tag in (None, child.tag) and child.classes >= set(classes) and wanted.items() <= child.attributes.items():
                out.append(child)
            out += child.find(tag, *classes, **attributes)
        return out


class Tree(html.parser.HTMLParser):
    """The document that the browser printed."""

    def __init__(self, text):
        super().__init__()
        self.root = self.open = Element("", [], None)
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        element = Element(tag, attrs, self.open)
        self.open.children.append(element)
        if tag not in VOID:
            self.open = element

    def handle_endtag(self, tag):
        while self.open.parent is not None and self.open.tag != tag:
            self.open = self.open.parent
        if self.open.parent is not None:
            self.open = self.open.parent

    def handle_data(self, data):
        self.open.children.append(data)


class BrowserTest(CommandTest):
    @classmethod
    def setUpClass(cls):
        cls.browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
        if cls.browser is None:
            raise AssertionError("no Chromium in PATH: apt-get install chromium")

    def browse(self, address, *flags):
        """The address in a browser of its own: what stdout and stderr had."""
        done = subprocess.run(
            [self.browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", f"--user-data-dir={self.path('profile')}",
             "--window-size=1280,900", "--hide-scrollbars", "--enable-logging=stderr", "--virtual-time-budget=4000", *flags, address],
            capture_output=True, timeout=SECONDS, check=False)
        self.assertEqual(done.returncode, 0, done.stderr[-2000:])
        log = done.stderr.decode(errors="replace")
        self.assertEqual([line for line in log.splitlines() if "CONSOLE" in line], [])
        return done.stdout.decode()

    def look(self, hash_text="", page="page.html"):
        """The document after the page's script has run, for an address with that fragment."""
        return Tree(self.browse(f"file://{self.path(page)}{hash_text}", "--dump-dom")).root

    def explain(self, *flags, model=LLAMA):
        self.ok("explain", model, "--html", self.path("page.html"), *flags)
        return self.answer("explain", model, *flags)

    def one(self, elements):
        self.assertEqual(len(elements), 1)
        return elements[0]

    def test_chain_map_and_table(self):
        seen = self.explain()
        page = self.look()
        self.assertEqual(self.one(page.find("h1")).text, os.path.basename(LLAMA))
        rows = self.one(page.find("table", id="chain-table")).find("tbody")[0].find("tr")
        self.assertEqual([row.attributes["data-pass"] for row in rows], [row["name"] for row in seen["passes"]])
        for row, wanted in zip(rows, seen["passes"]):
            launches = row.find("td")[2].text
            self.assertTrue(launches.endswith(str(wanted["launches_after"])), launches)
            self.assertEqual(row.find("td")[-1].text, wanted["contract"])
        tile = page.find("div", "tile")[0]
        self.assertIn(f"{seen['levels']['O1']['launches']} \u2192 {seen['levels']['O3']['launches']}", tile.text)
        rectangles = self.one(page.find("div", id="map")).find("rect")
        self.assertGreater(len(rectangles), 10)
        for rectangle in rectangles:
            self.assertGreater(float(rectangle.attributes["width"]), 0)
            self.assertGreaterEqual(float(rectangle.attributes["y"]), 0)
        self.assertIn(f"{seen['levels']['O3']['activation_bytes']} bytes", self.one(page.find("p", id="map-line")).text)
        table = self.one(page.find("table", id="node-table"))
        self.assertEqual(len(table.find("tbody")[0].find("tr")), seen["levels"]["O3"]["nodes"])
        self.assertEqual([head.attributes["aria-sort"] for head in table.find("th")].count("descending"), 1)

    def test_a_pass_shows_what_it_changed(self):
        self.explain()
        page = self.look("#pass=fuse-norm&scope=1")
        self.assertEqual(self.one(page.find("section", id="graph")).attributes["data-pass"], "fuse-norm")
        self.assertEqual([row.attributes["data-pass"] for row in page.find("tr", "chosen")], ["fuse-norm"])
        cells = self.one(page.find("div", id="diff-rows"))
        self.assertIn("rms_norm 5", self.one(page.find("p", id="pass-line")).text)
        added = [cell.find("span", "op")[0].text for cell in cells.find("div", "cell", "added")]
        removed = [cell.find("span", "op")[0].text for cell in cells.find("div", "cell", "removed")]
        self.assertEqual(added, ["rms_norm"] * 2)
        self.assertEqual(removed, ["mul", "reduce_mean", "add", "rsqrt", "mul", "mul"] * 2)
        # Each side is the layer whole: what went and came is the difference.
        sides = [len(cells.find("div", "cell", data_side=side)) for side in ("0", "1")]
        self.assertEqual(sides[0] - sides[1], len(removed) - len(added))
        self.assertGreater(len(cells.find("path")), 20)
        # The first new node is the one in focus.
        detail = self.one(page.find("aside", id="detail"))
        self.assertEqual(detail.find("h3")[0].text, "rms_norm")
        self.assertIn("reduce_mean", detail.find("pre")[0].text)
        self.assertIn("rms_norm", self.one(cells.find("div", "focus")).text)

    def test_another_pass_another_part(self):
        self.explain()
        page = self.look("#pass=fuse-softmax&scope=0")
        cells = self.one(page.find("div", id="diff-rows"))
        self.assertEqual([cell.find("span", "op")[0].text for cell in cells.find("div", "added")], ["softmax"])
        page = self.look("#pass=fuse-softmax&scope=all")
        cells = self.one(page.find("div", id="diff-rows"))
        self.assertEqual([cell.find("span", "op")[0].text for cell in cells.find("div", "added")], ["softmax"] * 2)
        self.assertRegex(cells.find("div", "skip")[0].text, r"^\d+ nodes as before$")
        page = self.look("#pass=&scope=0")
        self.assertIn("as built", self.one(page.find("p", id="pass-line")).text)

    def test_clicks(self):
        """A script of the test's, put into the page's end, clicks as a person would and writes down what it saw."""
        self.explain()
        with open(self.path("page.html"), encoding="utf-8") as file:
            text = file.read()
        script = """<script>
          const seen = {};
          const note = (name, value) => { seen[name] = value; };
          document.querySelector('#chain-table tr[data-pass="fuse-rope"]').click();
          setTimeout(() => {
            note('pass', document.getElementById('graph').dataset.pass);
            note('hash', location.hash);
            note('added', [...document.querySelectorAll('.cell.added .op')].map((e) => e.textContent).join());
            document.querySelector('#passes button[data-pass="simplify"]').click();
            setTimeout(() => {
              note('pass2', document.getElementById('graph').dataset.pass);
              const top = () => document.querySelector('#node-table tbody tr').cells;
              document.querySelectorAll('#node-table th')[0].click();
              note('first', top()[0].textContent);
              document.querySelectorAll('#node-table th')[7].click();
              note('dearest', top()[7].textContent);
              document.getElementById('filter').value = 'lm_head';
              document.getElementById('filter').dispatchEvent(new Event('input'));
              note('filtered', document.querySelectorAll('#node-table tbody tr').length);
              const before = document.querySelectorAll('#map rect').length;
              document.querySelector('#map-levels button').click();
              note('map', document.querySelectorAll('#map rect').length > before);
              document.querySelector('#map rect').dispatchEvent(new MouseEvent('mousemove', {clientX: 9, clientY: 9}));
              note('tip', document.getElementById('tip').textContent);
              const result = document.createElement('pre');
              result.id = 'result';
              result.textContent = Object.entries(seen).map(([k, v]) => k + '=' + v).join('\\n');
              document.body.append(result);
            }, 100);
          }, 100);
        </script></body>"""
        self.write("clicked.html", text.replace("</body>", script))
        result = self.one(self.look(page="clicked.html").find("pre", id="result")).text
        seen = dict(line.split("=", 1) for line in result.splitlines() if "=" in line)
        self.assertEqual((seen["pass"], seen["added"].split(",").count("rope"), seen["pass2"]), ("fuse-rope", 2, "simplify"))
        self.assertIn("pass=fuse-rope", seen["hash"])
        self.assertEqual(seen["filtered"], str(len(self.answer("explain", LLAMA, "--node", "lm_head")["nodes"])))
        self.assertRegex(seen["dearest"], r"^\d+\.\d [MGT]OP$")
        self.assertEqual(seen["map"], "true")
        self.assertRegex(seen["tip"], r"^%\d+ of ")

    def test_a_hostile_name_runs_nothing(self):
        name = "<img src=x onerror=document.title='owned'>.gguf"
        shutil.copy(LLAMA, self.path(name))
        self.explain(model=self.path(name))
        page = self.look()
        self.assertEqual(self.one(page.find("h1")).text, name)
        self.assertEqual(page.find("img"), [])
        self.assertEqual(self.one(page.find("title")).text, f"hone explain: {name}")

    def test_a_picture_of_it_is_not_empty(self):
        self.explain()
        picture = self.path("page.png")
        for scheme in ("0", "1"):
            self.browse(f"file://{self.path('page.html')}", f"--screenshot={picture}", f"--blink-settings=preferredColorScheme={scheme}")
            with open(picture, "rb") as file:
                data = file.read()
            self.assertEqual(data[:8], b"\x89PNG\r\n\x1a\n")
            self.assertGreater(len(data), 40_000)  # a page of one colour takes 5 kB
            os.remove(picture)


if __name__ == "__main__":
    command.main()
