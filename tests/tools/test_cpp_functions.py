"""tools/cpp_functions.py finds functions where they are, and nothing else."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import cpp_functions  # noqa: E402


def found(text):
    return cpp_functions.functions(text)


class Functions(unittest.TestCase):
    def test_a_function_counts_from_its_signature_to_its_brace(self):
        self.assertEqual(found("namespace a {\n\nint f(\n    int x) {\n  return x;\n}\n\n}  // namespace a\n"),
                         [("f", 3, 6)])

    def test_braces_in_literals_and_comments_do_not_count(self):
        text = ('void f() {\n  auto a = "}";\n  auto b = \'}\';\n  // }\n  /* } \n } */\n'
                '  auto c = R"x(}}}\n)" )x";\n  int d = 1\'000\'000;\n  auto e = "\\"}";\n}\nint g() { return 1; }\n')
        self.assertEqual(found(text), [("f", 1, 11), ("g", 12, 12)])

    def test_methods_of_classes_count_one_by_one(self):
        text = ("struct A final : B<int> {\n public:\n  explicit A(int x) : a_{x}, b_(x), c_{f(x)} {\n    g();\n  }\n"
                "  int get() const noexcept { return a_; }\n  int a_{0};\n  std::vector<int> b_ = {1, 2};\n"
                "  bool operator==(const A&) const {\n    return true;\n  }\n};\n")
        self.assertEqual(found(text), [("A", 3, 5), ("get", 6, 6), ("operator==", 9, 11)])

    def test_tables_are_no_functions_but_lambdas_in_them_are(self):
        text = ("const Row rows[] = {\n  {1, 2},\n  {3, [](int x) {\n    return x;\n  }},\n  {4, +[] { return 0; }},\n};\n"
                "auto twice = [](int x) {\n  return 2 * x;\n};\n")
        self.assertEqual(found(text), [("lambda", 3, 5), ("lambda", 6, 6), ("lambda", 8, 10)])

    def test_lambdas_inside_a_function_are_part_of_it(self):
        self.assertEqual(found("int f() {\n  auto g = [&] {\n    return 1;\n  };\n  return g();\n}\n"), [("f", 1, 6)])

    def test_templates_constraints_and_trailing_types(self):
        text = ("template <class T = std::vector<int>>\n  requires std::integral<T>\nauto f(T x = {}) -> std::pair<T, int> {\n"
                "  return {x, 1};\n}\n"
                "template <class T>\nvoid g(T x) requires(sizeof(T) > 1) {\n}\n"
                "template <class T>\nstruct alignas(64) S {\n  void h() && {}\n};\n")
        self.assertEqual(found(text), [("f", 1, 5), ("g", 6, 8), ("h", 11, 11)])

    def test_tests_are_named_by_their_macro(self):
        self.assertEqual(found("TEST(Gguf, Truncated) {\n  EXPECT_TRUE(x);\n}\n"), [("TEST(Gguf, Truncated)", 1, 3)])

    def test_enums_externs_and_directives(self):
        text = ('#define OPEN {  // }\n#define TWO(x) \\\n  { x\nextern "C" {\nenum class E : int { A, B };\n'
                'int f() { return 0; }\n}\n')
        self.assertEqual(found(text), [("f", 6, 6)])

    def test_lambda_arguments_at_namespace_scope(self):
        self.assertEqual(found("const bool done = add(\"a\", [](int x) {\n  return x;\n}, [] {\n  return 1;\n});\nint f() {\n}\n"),
                         [("lambda", 1, 3), ("lambda", 3, 5), ("f", 6, 7)])

    def test_unbalanced_braces_are_said(self):
        self.assertRaisesRegex(ValueError, "line 2", found, "int x;\n}\n")
        self.assertRaisesRegex(ValueError, "line 1", found, "namespace a {\n")


if __name__ == "__main__":
    unittest.main()
