// The layout of the data that this module was compiled to read. `layout.py` declares the layout that Python writes, and
// compares the two when the module is loaded.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "activation.h"
#include "beam.h"
#include "call.h"
#include "decoder.h"
#include "linear.h"
#include "member.h"
#include "norm.h"
#include "numbers.h"
#include "pointer.h"
#include "prefixes.h"
#include "shortlist.h"
#include "top.h"

namespace transduce {

constexpr Index VERSION = 1;  // raised if something changes its meaning but not its layout
constexpr std::size_t WORD = sizeof(Index);  // Python writes whole numbers of 64 bits and addresses

struct Field {
    const char* name;
    std::size_t offset;
};

struct Layout {
    const char* name;
    std::size_t size;
    std::vector<Field> fields;

    // As "gain@0 bias@1, 2 words".
    std::string described() const {
        std::string text;
        for (const Field& each : fields) {
            text += std::string(text.empty() ? "" : " ") + each.name + "@" + words(each.offset);
        }
        return text + ", " + words(size) + " words";
    }

  private:
    static std::string words(std::size_t bytes) {
        return std::to_string(bytes / WORD) + (bytes % WORD ? "+" + std::to_string(bytes % WORD) + " bytes" : "");
    }
};

#define FIELD(T, name) Field{#name, offsetof(T, name)}

inline std::vector<Layout> layouts() {
    return {
        {"Weight", sizeof(Weight),
         {FIELD(Weight, panels), FIELD(Weight, scale_O), FIELD(Weight, above_O), FIELD(Weight, bias_O),
          FIELD(Weight, inputs), FIELD(Weight, outputs)}},
        {"Norm", sizeof(Norm), {FIELD(Norm, gain), FIELD(Norm, bias)}},
        {"BlockWeights", sizeof(BlockWeights),
         {FIELD(BlockWeights, query), FIELD(BlockWeights, key_value), FIELD(BlockWeights, output),
          FIELD(BlockWeights, forget), FIELD(BlockWeights, value), FIELD(BlockWeights, cross_query),
          FIELD(BlockWeights, cross_output), FIELD(BlockWeights, inner),
          FIELD(BlockWeights, inner_linear), FIELD(BlockWeights, outer), FIELD(BlockWeights, self_norm), FIELD(BlockWeights, cross_norm),
          FIELD(BlockWeights, forward_norm), FIELD(BlockWeights, query_norm), FIELD(BlockWeights, key_norm)}},
        {"Heads", sizeof(Heads), {FIELD(Heads, queries), FIELD(Heads, groups), FIELD(Heads, width)}},
        {"Places", sizeof(Places),
         {FIELD(Places, key), FIELD(Places, value), FIELD(Places, key_source), FIELD(Places, key_head),
          FIELD(Places, key_place), FIELD(Places, value_source), FIELD(Places, value_head),
          FIELD(Places, value_place)}},
        {"Pointer", sizeof(Pointer),
         {FIELD(Pointer, query), FIELD(Pointer, generate), FIELD(Pointer, generate_bias)}},
        {"Copies", sizeof(Copies), {FIELD(Copies, state_BSD), FIELD(Copies, id_BS), FIELD(Copies, place_BS)}},
        {"BlockMemory", sizeof(BlockMemory), {FIELD(BlockMemory, said), FIELD(BlockMemory, read)}},
        {"Writer", sizeof(Writer),
         {FIELD(Writer, embedding_VD), FIELD(Writer, position_TD), FIELD(Writer, turn_TE),
          FIELD(Writer, embedding_norm), FIELD(Writer, norm), FIELD(Writer, output), FIELD(Writer, width),
          FIELD(Writer, heads), FIELD(Writer, hidden), FIELD(Writer, pre), FIELD(Writer, activation),
          FIELD(Writer, blocks), FIELD(Writer, scaled), FIELD(Writer, zero_start), FIELD(Writer, pointer)}},
        {"Reader", sizeof(Reader),
         {FIELD(Reader, writer), FIELD(Reader, weights), FIELD(Reader, read), FIELD(Reader, real_BS),
          FIELD(Reader, positions), FIELD(Reader, copies)}},
        {"NgramModel", sizeof(NgramModel),
         {FIELD(NgramModel, key), FIELD(NgramModel, first), FIELD(NgramModel, share), FIELD(NgramModel, rest),
          FIELD(NgramModel, root), FIELD(NgramModel, weight), FIELD(NgramModel, levels), FIELD(NgramModel, vocabulary),
          FIELD(NgramModel, end)}},
        {"Barred", sizeof(Barred), {FIELD(Barred, column), FIELD(Barred, count)}},
        {"Wanted", sizeof(Wanted),
         {FIELD(Wanted, start), FIELD(Wanted, end), FIELD(Wanted, beam), FIELD(Wanted, nbest),
          FIELD(Wanted, barred), FIELD(Wanted, longest), FIELD(Wanted, stopping), FIELD(Wanted, forces_end)}},
    };
}

#undef FIELD

struct Number {
    const char* name;
    double value;
};

// The constants of both sides.
constexpr Number numbers[] = {
    {"VERSION", VERSION}, {"WIDEST", WIDEST}, {"DEEP", DEEP}, {"QUADS", QUADS}, {"VECTOR", VECTOR}, {"ROWS", ROWS},
    {"LOG_ROUNDING", LOG_ROUNDING},
    {"probability", static_cast<double>(Mean::probability)},
    {"log_probability", static_cast<double>(Mean::log_probability)},
    {"slots", static_cast<double>(Stopping::slots)},
    {"heuristic", static_cast<double>(Stopping::heuristic)},
    {"complete", static_cast<double>(Stopping::complete)},
    {"never", static_cast<double>(Stopping::never)},
    {"identity", static_cast<double>(Activation::identity)},
    {"relu", static_cast<double>(Activation::relu)},
    {"gelu", static_cast<double>(Activation::gelu)},
    {"gelu_tanh", static_cast<double>(Activation::gelu_tanh)},
    {"swish", static_cast<double>(Activation::swish)},
    {"squared_relu", static_cast<double>(Activation::squared_relu)},
    {"sigmoid", static_cast<double>(Activation::sigmoid)},
};

// Takes ownership of `value`, which is null after an error; returns false then.
inline bool put(PyObject* dictionary, const char* name, PyObject* value) {
    const bool done = value && PyDict_SetItemString(dictionary, name, value) == 0;
    Py_XDECREF(value);
    return done;
}

// {name: layout of a struct, or constant}. The arguments of functions are in their __doc__.
inline PyObject* layout(PyObject*, PyObject*) {
    PyObject* found = PyDict_New();
    bool done = found != nullptr;
    for (const Layout& each : layouts()) {
        done = done && put(found, each.name, PyUnicode_FromString(each.described().c_str()));
    }
    for (const Number& each : numbers) done = done && put(found, each.name, PyFloat_FromDouble(each.value));
    if (done) return found;
    Py_XDECREF(found);
    return nullptr;
}

}  // namespace transduce
