"""tools/check_docs.py finds what a document names and the tree no longer has."""

import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import check_docs  # noqa: E402

SOURCE = """#include "plan/plan.h"
namespace hone {
// old_name() went away.
const Row kRows[] = {{1}};
Plan Planner::make(int x) {
  return call_elsewhere(x, "text_only()");
}
}  // namespace hone
"""
HEADER = "struct Planner {\n  Plan make(int x);\n};\nResult<int> declared(int x);\n"


class Docs(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.write("src/plan/plan.cc", SOURCE)
        self.write("src/plan/plan.h", HEADER)
        self.write("tools/go.sh", "run_it() {\n  true\n}\n")

    def write(self, path, text):
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text, encoding="utf-8")

    def findings(self, text, path="docs/architecture.md"):
        self.write(path, text)
        return check_docs.check(self.root)

    def test_what_exists_is_fine(self):
        self.assertEqual(self.findings(
            "1. `src/plan/plan.cc:Planner::make` `src/plan/plan.cc:make()` `src/plan/plan.h:declared` `src/plan/plan.h:Planner`\n"
            "2. `src/plan/plan.cc:kRows` `src/plan/plan.cc:3` `src/plan/` `src/*/plan.h` `src/{plan,plan}` `tools/go.sh:run_it`\n"
            "```\n3. src/plan/plan.cc:make does it\n```\n"
            "`build/release/hone`, `a/b`, [x](../src/plan/plan.h#L1), [y](https://example.org/none), [z](#below)\n"), [])

    def test_a_missing_file_folder_or_glob(self):
        for word in ("src/plan/gone.cc", "src/gone/", "src/gone/*.h", "src/{plan,gone}", "GONE.md", "tests/gone.cc:f"):
            found = self.findings(f"text\nsee `{word}`\n")
            self.assertEqual(len(found), 1, (word, found))
            self.assertTrue(found[0].startswith("docs/architecture.md:2: `"), found[0])
            self.assertIn("does not exist", found[0])

    def test_a_missing_function(self):
        for name in ("old_name", "call_elsewhere", "text_only", "Planner::gone", "kGone"):
            self.assertEqual(self.findings(f"`src/plan/plan.cc:{name}`\n"),
                             [f"docs/architecture.md:1: `src/plan/plan.cc:{name}`: src/plan/plan.cc has no {name}"])

    def test_a_step_in_a_block(self):
        self.assertEqual(len(self.findings("```\nsrc/plan/plan.cc:gone\n```\n")), 1)

    def test_a_dead_link(self):
        self.assertEqual(self.findings("[x](docs/gone.md)\n", "README.md"), ["README.md:1: the link to docs/gone.md leads nowhere"])

    def test_every_package_is_explained(self):
        self.write("scripts/packages.txt", "# comment\n[build]\ncmake\nninja-build\n")
        self.assertEqual(self.findings("`cmake` builds; ninja-build too\n", "docs/dependencies.md"),
                         ["scripts/packages.txt:4: docs/dependencies.md does not say why `ninja-build` is needed"])
        self.assertEqual(self.findings("`cmake`, `ninja-build`\n", "docs/dependencies.md"), [])


if __name__ == "__main__":
    unittest.main()
