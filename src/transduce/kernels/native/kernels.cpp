// The module's table of functions. Python's side of each, with its checks, is the file of the same name beside it.

#include "attention.h"
#include "beam.h"
#include "call.h"
#include "choice.h"
#include "cross_entropy.h"
#include "decoder.h"
#include "dropout.h"
#include "layout.h"
#include "linear.h"
#include "memory.h"
#include "norm.h"
#include "prefixes.h"
#include "rotary.h"
#include "top.h"

namespace transduce {

// What a View, Allowed and Sizes hold, written out, as Python can pass only addresses and numbers.
#define VIEW(name) void *name, Index name##_batch, Index name##_position, Index name##_head
#define THE_VIEW(T, name) (View<T>{static_cast<T*>(name), name##_batch, name##_position, name##_head})
#define ALLOWED void *allowed, Index allowed_batch, Index allowed_query
#define THE_ALLOWED (Allowed{static_cast<const std::uint8_t*>(allowed), allowed_batch, allowed_query})
#define SIZES Index batch, Index heads, Index groups, Index queries, Index keys, Index width
#define THE_SIZES (Sizes{batch, heads, groups, queries, keys, width})

template <typename T>
void attention_of(VIEW(query), VIEW(key), VIEW(value), ALLOWED, VIEW(out), SIZES) {
    attention(THE_VIEW(T, query), THE_VIEW(T, key), THE_VIEW(T, value), THE_ALLOWED, THE_VIEW(T, out), THE_SIZES);
}

template <typename T>
void attention_gradient_of(VIEW(query), VIEW(key), VIEW(value), ALLOWED, VIEW(dout), VIEW(dquery), VIEW(dkey),
                           VIEW(dvalue), SIZES) {
    attention_gradient(THE_VIEW(T, query), THE_VIEW(T, key), THE_VIEW(T, value), THE_ALLOWED, THE_VIEW(T, dout),
                       THE_VIEW(T, dquery), THE_VIEW(T, dkey), THE_VIEW(T, dvalue), THE_SIZES);
}

inline void linear_of(const Weight* weight, const float* x_NI, float* y_NO, Index rows, Index activation) {
    linear(*weight, x_NI, y_NO, rows, static_cast<Activation>(activation));
}

PyMethodDef functions[] = {
    method<&attention_of<float>>("attention_float32"),
    method<&attention_of<bf16>>("attention_bfloat16"),
    method<&attention_gradient_of<float>>("attention_gradient_float32"),
    method<&attention_gradient_of<bf16>>("attention_gradient_bfloat16"),
    method<&encoder_pass>("encoder_pass"),
    method<&beam_search>("beam_search"),
    method<&cross_entropy<float>>("cross_entropy_float32"),
    method<&cross_entropy<bf16>>("cross_entropy_bfloat16"),
    method<&cross_entropy_gradient<float>>("cross_entropy_gradient_float32"),
    method<&cross_entropy_gradient<bf16>>("cross_entropy_gradient_bfloat16"),
    method<&add_dropped<float, float>>("add_dropped_float32"),
    method<&add_dropped<bf16, float>>("add_dropped_bfloat16"),
    method<&ctc_prefixes>("ctc_prefixes"),
    method<&decoder_step>("decoder_step"),
    method<&dropped<float, float>>("dropped_float32_float32"),
    method<&dropped<bf16, float>>("dropped_bfloat16_float32"),
    method<&dropped<bf16, bf16>>("dropped_bfloat16_bfloat16"),
    {"layout", &layout, METH_NOARGS, nullptr},
    method<&layer_norm<float>>("layer_norm_float32"),
    method<&layer_norm<bf16>>("layer_norm_bfloat16"),
    method<&layer_norm_gradient<float>>("layer_norm_gradient_float32"),
    method<&layer_norm_gradient<bf16>>("layer_norm_gradient_bfloat16"),
    method<&likeliest>("likeliest"),
    method<&linear_of>("linear"),
    method<&log_softmax>("log_softmax"),
    method<&memory_unroll>("memory_unroll"),
    method<&memory_unroll_gradient>("memory_unroll_gradient"),
    method<&pack>("pack"),
    method<&pack_whole>("pack_whole"),
    method<&packed_rows>("packed_rows"),
    method<&top>("top"),
    method<&turned<float>>("turned_float32"),
    method<&turned<bf16>>("turned_bfloat16"),
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace transduce

#define JOINED(left, right) left##right
#define INITIALISER(name) JOINED(PyInit_, name)
#define TEXT(name) #name
#define NAME(name) TEXT(name)

PyMODINIT_FUNC INITIALISER(MODULE)(void) {
    static PyModuleDef definition = {PyModuleDef_HEAD_INIT, NAME(MODULE), nullptr, -1, transduce::functions,
                                     nullptr, nullptr, nullptr, nullptr};
    return PyModule_Create(&definition);
}
