/* A pass of your own: one function, in a shared library that `--plugin FILE.so` names.
 *
 *   const struct hone_pass* hone_plugin_pass(int index);      the pass of this number, or NULL behind the
 * last one
 *
 * A pass gets the graph as text and answers with a graph as text: the form that `hone explain --dump DIR` and
 * hone-opt print (grammar: src/graph/text.h; what the ops mean: src/graph/graph.h). There is no other data
 * between hone and a plugin, so that any compiler and any language with C linkage will do, whatever its
 * flags.
 *
 * The library is loaded in a process of its own, never in hone's. A crash, an endless loop or an exception
 * there is an error with the plugin's name, and a library that was built with fast-math changes no arithmetic
 * of hone.
 *
 * What hone checks of an answer: the text parses; the graph follows the rules of the IR; its inputs, outputs
 * and states are those it was given. `hone verify` measures whether it computes the same within the contract;
 * for that, a value that keeps its name keeps its meaning, and a new value has a name of its own: with a
 * letter, as %q_scaled.3, for numbers are given by hone.
 *
 * Valid C and C++. examples/scale_queries_pass.cc is a whole one. */
#ifndef HONE_HONE_PASS_H
#define HONE_HONE_PASS_H

#ifdef __cplusplus
extern "C" {
#endif

/* The form of what stands below. hone refuses another one by its number. */
#define HONE_PASS_ABI 1

/* Hands `text` (ends with a 0 byte; copied) to hone: the graph, or what is wrong. The last call counts. */
typedef void (*hone_answer)(void* hone, const char* text);

struct hone_pass {  /* NOLINT(readability-identifier-naming): a name of C */
  int abi;          /* HONE_PASS_ABI */
  const char* name; /* "scale-queries": lower case letters, digits and '-'; --passes=-plugin:scale-queries */
  /* What it may do to the numbers: "same bits"; "fewer roundings"; "reorders"; "rounds to type". verify holds
   * it to that. */
  const char* contract;
  const char* bound; /* the bound of the contract as a formula to read; NULL for "same bits" */
  const char* place; /* where it stands in the chain: "before fuse-softmax" or "after fuse-norm" */
  int from_level;    /* it runs at this level of --level and above: 0 to 3 */
  const char* why;   /* why it stands there, for `hone explain` */
  /* Rewrites `graph`. Returns 0 after it has answered with the new graph (the same text if it changes
   * nothing), or another number after it has answered with the reason why it cannot. */
  int (*run)(const char* graph, hone_answer answer, void* hone);
};

const struct hone_pass* hone_plugin_pass(int index);

#ifdef __cplusplus
}
#endif

#endif
