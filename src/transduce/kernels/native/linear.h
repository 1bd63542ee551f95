// y = x W^T + b for a weight that was laid out for it once: in fp32, or in 8 bits as `transduce.kernels.matmul` says.
//
//     y_no = s_n t_o (sum_i X_ni W_oi) + b_o,   s_n = max_i |x_ni| / 127,   X = round(x / s)
//
// A row's result depends on that row alone, to the last bit: every product sums over i in one order.
//
// Shapes: N rows, I inputs, O outputs; panels of WIDE or DEEP outputs, the last filled up with zeros.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#ifdef __AVX2__
#include <immintrin.h>
#endif

#include "activation.h"
#include "numbers.h"
#include "product.h"
#include "tiles.h"

namespace transduce {

constexpr Index TILE = NATIVE == LANES ? 5 : 6;  // rows that are multiplied at once: as many sums as registers hold
constexpr Index WHOLE_TILE = NATIVE == LANES ? TILE : 3;  // the same in 8 bits
constexpr Index BLOCK = NATIVE == LANES ? 80 : 84;  // rows, of whole tiles, that meet one panel after the other
constexpr Index WIDE = 2 * NATIVE;  // outputs of a panel in fp32, two vectors
constexpr Index WIDEST = 32;  // which panels' outputs are filled up to a multiple of
constexpr Index DEEP = 64;  // and in 8 bits, four vectors
constexpr Index FEW = 8;  // rows below which matrix tiles are no faster
constexpr Index SPARE = 16;  // rows that a matrix tile may read behind the last
constexpr Index QUADS = 4;   // inputs that one instruction multiplies in 8 bits
constexpr float LEAST = 1e-36f;  // what is no greater is 0 in 8 bits: 1 / its scale would be infinite

static_assert(WIDEST % WIDE == 0 && BLOCK % TILE == 0 && BLOCK % WHOLE_TILE == 0);

// As `transduce.kernels.native.linear` writes it. fp32: panels (O / WIDE, I, WIDE). 8 bits: panels (O / DEEP, I / 4, DEEP, 4),
// the scale t_o, and 128 sum_i W_oi, as x comes unsigned, 128 above what it is.
struct Weight {
    const void* panels;
    const float* scale_O;
    const std::int32_t* above_O;
    const float* bias_O;  // null = none
    Index inputs, outputs;
};

template <int rows>
inline void float_tile(const float* x_NI, const float* panel, const float* bias, float* y_NO, Index inputs,
                       Index outputs, Index columns, Activation activation) {
    float sum[rows * WIDE];
    narrow_tile<rows, WIDE / NATIVE>({x_NI, inputs, 1}, panel, WIDE, sum, WIDE, inputs, false);
    for (int n = 0; n < rows; ++n) {
        for (Index o = 0; o < columns; ++o) sum[n * WIDE + o] += bias ? bias[o] : 0.0f;
    }
    activate(sum, rows * WIDE, activation);
    for (int n = 0; n < rows; ++n) std::copy_n(sum + n * WIDE, columns, y_NO + n * outputs);
}

// What the greatest of some numbers is 127 times of; 1 where they are all but 0, NaN where one is NaN or infinite.
inline float scale_of(const float* x, Index count) {
    float greatest = 0, nothing = 0;
#pragma omp simd reduction(max : greatest) reduction(+ : nothing)
    for (Index i = 0; i < count; ++i) {
        greatest = std::fabs(x[i]) > greatest ? std::fabs(x[i]) : greatest;
        nothing += x[i] * 0;  // NaN where x is not finite
    }
    if (nothing != 0) return NAN;
    return greatest > LEAST ? greatest / 127 : 1.0f;
}

// x in whole numbers of 0 to 255, 128 standing for 0, and each row's scale.
inline void quantise(const float* x_NI, Index rows, Index inputs, Index room, std::uint8_t* whole, float* scale_N) {
    for (Index n = 0; n < rows; ++n) {
        const float* x = x_NI + n * inputs;
        std::uint8_t* to = whole + n * room;
        scale_N[n] = scale_of(x, inputs);
        if (std::isnan(scale_N[n])) {  // so is then all that is made of the row
            std::fill(to, to + room, std::uint8_t{128});
            continue;
        }
        const float factor = 1 / scale_N[n];
#pragma omp simd
        for (Index i = 0; i < inputs; ++i) to[i] = static_cast<std::uint8_t>(static_cast<int>(x[i] * factor + 128.5f));
        for (Index i = inputs; i < room; ++i) to[i] = 128;
    }
}

#ifdef __AVX512VNNI__
// What one row makes of its exact sums over a panel.
inline void whole_row(const __m512i* sum, float row_scale, const Weight& weight, Index first, float* y, Index columns,
                      Activation activation) {
    const __m512 scale = _mm512_set1_ps(row_scale);
    for (int v = 0; v < 4 && v * LANES < columns; ++v) {
        const Index o = first + v * LANES, left = columns - v * LANES;
        const __mmask16 mask = static_cast<__mmask16>(left >= LANES ? 0xffff : (1 << left) - 1);
        const __m512i exact = _mm512_sub_epi32(sum[v], _mm512_maskz_loadu_epi32(mask, weight.above_O + o));
        const __m512 both = _mm512_mul_ps(scale, _mm512_maskz_loadu_ps(mask, weight.scale_O + o));
        const __m512 bias = weight.bias_O ? _mm512_maskz_loadu_ps(mask, weight.bias_O + o) : _mm512_setzero_ps();
        _mm512_mask_storeu_ps(y + v * LANES, mask, _mm512_fmadd_ps(_mm512_cvtepi32_ps(exact), both, bias));
    }
    activate(y, columns, activation);
}

template <int rows>
inline void whole_tile(const std::uint8_t* x_NI, const float* scale_N, const std::int8_t* panel, const Weight& weight,
                       Index first, float* y_NO, Index room, Index columns,
                       Activation activation) {
    __m512i sum[rows][4];
    for (int n = 0; n < rows; ++n) {
        for (int v = 0; v < 4; ++v) sum[n][v] = _mm512_setzero_si512();
    }
    for (Index i = 0; i < room; i += QUADS) {
        const std::int8_t* from = panel + i * DEEP;
        __m512i w[4];
        for (int v = 0; v < 4; ++v) w[v] = _mm512_loadu_si512(from + v * 64);
        for (int n = 0; n < rows; ++n) {
            std::int32_t four;
            std::memcpy(&four, x_NI + n * room + i, sizeof four);
            const __m512i x = _mm512_set1_epi32(four);
            for (int v = 0; v < 4; ++v) sum[n][v] = _mm512_dpbusd_epi32(sum[n][v], x, w[v]);
        }
    }
    for (int n = 0; n < rows; ++n) {
        whole_row(sum[n], scale_N[n], weight, first, y_NO + n * weight.outputs, columns, activation);
    }
}
#elif defined(__AVX2__)
// Without instructions for products in 8 bits: in 16, two of which are added in 32, so that the sums are the same.
constexpr int QUARTER = 16;  // outputs whose sums of three rows registers hold, four in each

// What one row makes of its exact sums over a panel.
inline void whole_row(const std::int32_t* sum, float row_scale, const Weight& weight, Index first, float* y,
                      Index columns, Activation activation) {
    const std::int32_t* above = weight.above_O + first;
    const float* scale = weight.scale_O + first;
#pragma omp simd
    for (Index o = 0; o < columns; ++o) {
        const float bias = weight.bias_O ? weight.bias_O[first + o] : 0.0f;
        y[o] = std::fma(static_cast<float>(sum[o] - above[o]), row_scale * scale[o], bias);
    }
    activate(y, columns, activation);
}

// Neighbours added: eight sums in order, of two vectors that hold each sum in two halves.
inline __m256i joined(__m256i low, __m256i high) {
    return _mm256_permute4x64_epi64(_mm256_hadd_epi32(low, high), 0b11011000);
}

// Sums of some of a panel's outputs, (rows, DEEP) from `sum` on. x_NI in 16 bits, rows `room` apart.
template <int rows, int outputs>
inline void whole_sums(const std::int16_t* x_NI, const std::int8_t* panel, Index room, std::int32_t* sum) {
    constexpr int vectors = outputs / QUADS;
    __m256i found[rows][vectors];
    for (int n = 0; n < rows; ++n) {
        for (int v = 0; v < vectors; ++v) found[n][v] = _mm256_setzero_si256();
    }
    for (Index i = 0; i < room; i += QUADS) {
        __m256i x[rows];
        for (int n = 0; n < rows; ++n) {
            std::int64_t four;
            std::memcpy(&four, x_NI + n * room + i, sizeof four);
            x[n] = _mm256_set1_epi64x(four);
        }
        for (int v = 0; v < vectors; ++v) {
            const auto* from = reinterpret_cast<const __m128i*>(panel + i * DEEP + v * 16);
            const __m256i w = _mm256_cvtepi8_epi16(_mm_loadu_si128(from));
            for (int n = 0; n < rows; ++n) found[n][v] = _mm256_add_epi32(found[n][v], _mm256_madd_epi16(x[n], w));
        }
    }
    for (int n = 0; n < rows; ++n) {
        for (int v = 0; v < vectors; v += 2) {
            auto* to = reinterpret_cast<__m256i*>(sum + n * DEEP + v * QUADS);
            _mm256_storeu_si256(to, joined(found[n][v], found[n][v + 1]));
        }
    }
}

template <int rows>
inline void whole_tile(const std::int16_t* x_NI, const float* scale_N, const std::int8_t* panel, const Weight& weight,
                       Index first, float* y_NO, Index room, Index columns, Activation activation) {
    constexpr int outputs = rows == 1 ? 2 * QUARTER : QUARTER;
    std::int32_t sum[rows * DEEP];
    for (int o = 0; o < DEEP; o += outputs) whole_sums<rows, outputs>(x_NI, panel + o * QUADS, room, sum + o);
    for (int n = 0; n < rows; ++n) {
        whole_row(sum + n * DEEP, scale_N[n], weight, first, y_NO + n * weight.outputs, columns, activation);
    }
}
#endif

#ifdef __AMX_INT8__
// The same with matrix tiles for a block of rows, behind whose last there is room for TALL more.
inline void whole_block(const std::uint8_t* x_NI, const float* scale_N, const std::int8_t* panel, const Weight& weight,
                        Index first, float* y_NO, Index rows, Index room, Index columns,
                        Activation activation) {
    alignas(64) std::int32_t sums[TALL * DEEP];
    for (Index n = 0; n < rows; n += TALL) {
        tile_product(x_NI + n * room, room, panel, DEEP * QUADS, sums);
        for (Index row = 0; row < TALL && n + row < rows; ++row) {
            __m512i sum[4];
            for (int v = 0; v < 4; ++v) sum[v] = _mm512_load_si512(sums + row * DEEP + v * LANES);
            whole_row(sum, scale_N[n + row], weight, first, y_NO + (n + row) * weight.outputs, columns, activation);
        }
    }
}
#endif

inline void float_linear(const Weight& weight, const float* x_NI, float* y_NO, Index rows,
                         Activation activation = Activation::identity) {
    const Index inputs = weight.inputs, outputs = weight.outputs, panels = (outputs + WIDE - 1) / WIDE;
    for (Index block = 0; block < rows; block += BLOCK) {
        const Index count = std::min(BLOCK, rows - block);
#pragma omp parallel for schedule(static)
        for (Index p = 0; p < panels; ++p) {
            const float* panel = static_cast<const float*>(weight.panels) + p * inputs * WIDE;
            const Index first = p * WIDE, columns = std::min(WIDE, outputs - first);
            tiles<TILE>(count, [&](auto size, Index n) {
                float_tile<decltype(size)::value>(x_NI + (block + n) * inputs, panel,
                                                  weight.bias_O ? weight.bias_O + first : nullptr,
                                                  y_NO + (block + n) * outputs + first, inputs, outputs, columns,
                                                  activation);
            });
        }
    }
}

inline void whole_linear([[maybe_unused]] const Weight& weight, [[maybe_unused]] const float* x_NI,
                         [[maybe_unused]] float* y_NO, [[maybe_unused]] Index rows,
                         [[maybe_unused]] Activation activation) {
#ifdef __AVX2__
    const Index inputs = weight.inputs, outputs = weight.outputs, panels = (outputs + DEEP - 1) / DEEP;
    const Index room = (inputs + QUADS - 1) / QUADS * QUADS;
    std::vector<std::uint8_t> whole((rows + SPARE) * room);
    std::vector<float> scale(rows);
    quantise(x_NI, rows, inputs, room, whole.data(), scale.data());
#ifdef __AMX_INT8__
    if (rows >= FEW && room % DEPTH == 0 && tiles_allowed()) {
#pragma omp parallel
        {
            const TileConfig config;
            _tile_loadconfig(&config);
            for (Index block = 0; block < rows; block += BLOCK) {
                const Index count = std::min(BLOCK, rows - block);
#pragma omp for schedule(static) nowait
                for (Index p = 0; p < panels; ++p) {
                    const Index first = p * DEEP;
                    whole_block(whole.data() + block * room, scale.data() + block,
                                static_cast<const std::int8_t*>(weight.panels) + p * room * DEEP, weight, first,
                                y_NO + block * outputs + first, count, room, std::min(DEEP, outputs - first),
                                activation);
                }
            }
            _tile_release();
        }
        return;
    }
#endif
#ifdef __AVX512VNNI__
    const std::uint8_t* from = whole.data();
#else
    const std::vector<std::int16_t> wide(whole.begin(), whole.end());
    const std::int16_t* from = wide.data();
#endif
    for (Index block = 0; block < rows; block += BLOCK) {
        const Index count = std::min(BLOCK, rows - block);
#pragma omp parallel for schedule(static)
        for (Index p = 0; p < panels; ++p) {
            const std::int8_t* panel = static_cast<const std::int8_t*>(weight.panels) + p * room * DEEP;
            const Index first = p * DEEP, columns = std::min(DEEP, outputs - first);
            tiles<WHOLE_TILE>(count, [&](auto size, Index n) {
                whole_tile<decltype(size)::value>(from + (block + n) * room, scale.data() + block + n, panel,
                                                  weight, first, y_NO + (block + n) * outputs + first, room, columns,
                                                  activation);
            });
        }
    }
#endif
}

// Where row `o` of a packed weight begins, whose numbers stand WIDE apart.
inline const float* packed_row(const Weight& weight, Index o) {
    return static_cast<const float*>(weight.panels) + o / WIDE * WIDE * weight.inputs + o % WIDE;
}

// These rows (N, I) of a weight in fp32, as they were before they were packed.
inline void packed_rows(const Weight* weight, const Index* row_N, float* y_NI, Index rows) {
    for (Index n = 0; n < rows; ++n) {
        const float* from = packed_row(*weight, row_N[n]);
        for (Index i = 0; i < weight->inputs; ++i) y_NI[n * weight->inputs + i] = from[i * WIDE];
    }
}

// A weight (O, I) as `Weight` says.
inline void pack(const float* weight_OI, Index outputs, Index inputs, float* panels) {
#pragma omp parallel for schedule(static)
    for (Index o = 0; o < outputs; ++o) {
        float* to = panels + o / WIDE * WIDE * inputs + o % WIDE;
        for (Index i = 0; i < inputs; ++i) to[i * WIDE] = weight_OI[o * inputs + i];
    }
}

// The same in 8 bits, rounded to the nearest, of two equally near ones to the even one, and what `Weight` says of each row.
inline void pack_whole(const float* weight_OI, Index outputs, Index inputs, std::int8_t* panels, float* scale_O,
                       std::int32_t* above_O) {
    const Index room = (inputs + QUADS - 1) / QUADS * QUADS;
    constexpr float whole = 12582912.0f;  // 1.5 * 2^23: what is added to it is rounded
#pragma omp parallel for schedule(static)
    for (Index o = 0; o < outputs; ++o) {
        const float* from = weight_OI + o * inputs;
        std::int8_t* to = panels + o / DEEP * DEEP * room + o % DEEP * QUADS;
        const float scale = scale_of(from, inputs);
        std::int32_t sum = 0;
        for (Index i = 0; i < inputs; ++i) {
            const float rounded = std::isnan(scale) ? 0.0f : from[i] / scale + whole - whole;
            const auto value = static_cast<std::int8_t>(rounded);
            to[i / QUADS * QUADS * DEEP + i % QUADS] = value;
            sum += value;
        }
        scale_O[o] = scale;
        above_O[o] = 128 * sum;
    }
}

// In 8 bits where the weight has scales.
inline void linear(const Weight& weight, const float* x_NI, float* y_NO, Index rows,
                   Activation activation = Activation::identity) {
    if (weight.scale_O != nullptr) {
        whole_linear(weight, x_NI, y_NO, rows, activation);
    } else {
        float_linear(weight, x_NI, y_NO, rows, activation);
    }
}

}  // namespace transduce
