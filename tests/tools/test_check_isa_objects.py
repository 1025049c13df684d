"""tools/check_isa_objects.py on real objects of the compiler at hand."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import check_isa_objects  # noqa: E402

COMPILER = os.environ.get("CXX", "c++")
CLEAN = "namespace hone::kernels::avx2 { inline int f(int x) { return x + 1; } int g(int x); int g(int x) { return f(x); } }\n"
SHARED = "namespace hone { inline int f(int x) { return x + 1; } }\nint g(int x); int g(int x) { return hone::f(x); }\n"


class IsaObjects(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.build = pathlib.Path(folder.name).resolve()
        self.commands = []

    def add(self, target, flags, text, build=True):
        source, output = self.build / f"{target}.cc", f"{target}.dir/a.cc.o"
        source.write_text(text, encoding="utf-8")
        (self.build / output).parent.mkdir()
        # Without optimisation every inline function that is used becomes a weak symbol.
        command = f"{COMPILER} -std=c++20 -O0 {flags} -o {output} -c {source}"
        if build:
            subprocess.run(command.split(), cwd=self.build, check=True)
        self.commands.append({"directory": str(self.build), "command": command, "file": str(source)})

    def check(self):
        (self.build / "compile_commands.json").write_text(json.dumps(self.commands), encoding="utf-8")
        return check_isa_objects.check(self.build)

    def test_symbols_of_the_level_are_its_own(self):
        self.add("hone_kernels_avx2", "-mavx2", CLEAN)
        self.assertEqual(self.check(), ([], 1))

    def test_a_shared_inline_function(self):
        self.add("hone_kernels_avx2", "-mavx2", SHARED)
        self.assertEqual(self.check(), (["hone_kernels_avx2.dir/a.cc.o: hone::f(int)"], 1))

    def test_the_namespace_of_another_level_does_not_count(self):
        self.add("hone_kernels_avx512", "-mavx512f", CLEAN)
        self.assertEqual(self.check(), (["hone_kernels_avx512.dir/a.cc.o: hone::kernels::avx2::f(int)"], 1))

    def test_portable_objects_may_share(self):
        self.add("hone_kernels_portable", "", SHARED)
        self.assertEqual(self.check(), ([], 0))

    def test_flags_outside_a_level(self):
        self.add("hone_plan", "-mfma", CLEAN)
        self.assertIn("does not end in a level", self.check()[0][0])

    def test_an_object_that_was_not_built(self):
        self.add("hone_kernels_avx2", "-mavx2", CLEAN, build=False)
        self.assertIn("was not built", self.check()[0][0])


if __name__ == "__main__":
    unittest.main()
