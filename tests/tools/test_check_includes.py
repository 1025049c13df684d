"""tools/check_includes.py finds one violation of each kind, and nothing in a tree that keeps the rules."""

import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import check_includes  # noqa: E402


def findings(path, *lines):
    """What the checker says of a tree with the one file `path`."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder, path)
        file.parent.mkdir(parents=True)
        file.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
        return check_includes.check(pathlib.Path(folder))


class Includes(unittest.TestCase):
    def assert_clean(self, path, *lines):
        self.assertEqual(findings(path, *lines), [])

    def assert_found(self, path, line, rule):
        found = findings(path, "#pragma once", "#include <vector>", line)
        self.assertEqual(len(found), 1, found)
        self.assertTrue(found[0].startswith(f"{path}:3: "), found[0])
        self.assertIn(rule, found[0])

    def test_folders_above_may_be_included(self):
        self.assert_clean("src/plan/plan.cc", '#include "plan/plan.h"', '#include "kernels/kernel.h"', '#include "base/result.h"',
                          '#include "hone/engine.h"', "#include <fmt/format.h>", "#include <sys/mman.h>", "#include <vector>")
        self.assert_clean("apps/hone.cc", '#include "engine/engine.h"', '#include "exit_code.h"', "#include <CLI/CLI.hpp>")
        self.assert_clean("src/kernels/fast/matmul.cc", '#include "kernels/fast/vec16.h"', "#include <immintrin.h>")
        self.assert_clean("src/file/config.cc", "#include <nlohmann/json.hpp>")
        self.assert_clean("src/base/a.h", '// #include "plan/plan.h"')

    def test_a_folder_below(self):
        self.assert_found("src/base/a.h", '#include "tensor/dtype.h"', "only folders above it")
        self.assert_found("src/engine/a.cc", '#include "apps/exit_code.h"', "only folders above it")

    def test_file_never_includes_graph(self):
        self.assert_found("src/file/gguf.cc", '#include "graph/value.h"', "file may include only folders above it, and graph")

    def test_passes_never_include_kernels(self):
        self.assert_found("src/passes/fuse_norm.cc", '#include "kernels/kernel.h"', "passes may include only")

    def test_kernels_know_no_graph(self):
        for folder in ("graph", "model", "grad", "passes"):
            self.assert_found("src/kernels/matmul.cc", f'#include "{folder}/a.h"', f"kernels never includes {folder}")

    def test_a_path_without_folder(self):
        self.assert_found("src/base/a.cc", '#include "result.h"', 'must be written "folder/file.h"')

    def test_nothing_includes_bench(self):
        self.assert_found("src/plan/a.cc", '#include "bench/case.h"', "in no folder")
        self.assert_found("apps/hone.cc", '#include "bench/case.h"', "in no folder")

    def test_unknown_folders(self):
        self.assert_found("src/base/a.cc", '#include "utils/a.h"', "in no folder")
        self.assertIn("no place in the order", findings("src/utils/a.h")[0])

    def test_public_headers_stand_alone(self):
        self.assert_clean("include/hone/a.h", "#include <vector>", '#include "hone/b.h"')
        self.assert_found("include/hone/a.h", '#include "base/result.h"', "only standard headers")
        self.assert_found("include/hone/a.h", "#include <fmt/format.h>", "only standard headers")

    def test_libraries_stay_where_they_belong(self):
        self.assert_found("src/graph/a.cc", "#include <nlohmann/json.hpp>", "may be included only in")
        self.assert_found("src/engine/a.cc", "#include <CLI/CLI.hpp>", "may be included only in apps")
        self.assert_found("src/model/a.cc", "#include <pcre2.h>", "may be included only in tokens")
        self.assert_found("src/plan/a.cc", "#include <immintrin.h>", "may be included only in base, kernels")
        self.assert_found("src/base/a.cc", "#include <boost/asio.hpp>", "of no library")

    def test_own_headers_are_quoted(self):
        self.assert_found("src/base/a.cc", "#include <hone/a.h>", "quotes")


if __name__ == "__main__":
    unittest.main()
