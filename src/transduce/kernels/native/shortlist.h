// Few outputs of a weight for each of many sources: the words of its list. What a word gets is the same to the last bit
// as among all words.
//
// In fp32 a list's columns are laid out once as a weight of their own, so that every sum goes over i in the same order.
// In 8 bits sums are exact in any order: rows of one weight serve all lists, and what these share stays in the cache.
//
// Shapes: B sources, L words of all lists one behind the other, N rows of x, O outputs, I inputs.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "linear.h"
#include "numbers.h"

namespace transduce {

constexpr Index VECTOR = 64;  // bytes; rows of 8 bits are filled up with zeros to whole ones

// The words of source b are word_L[first_B[b]] to word_L[first_B[b + 1] - 1], in rising order.
struct Lists {
    const Index *word_L, *first_B;  // null = none
    const std::int8_t* row_OI;      // the weight in 8 bits, row by row; null in fp32
    Index count(Index source) const { return first_B[source + 1] - first_B[source]; }
    const Index* words(Index source) const { return word_L + first_B[source]; }
};

// Panels (., I, WIDE) of these words' columns; what fills up the last panel is the first word again.
inline void gather(const float* from, const Index* word, Index words, Index inputs, float* to) {
    for (Index first = 0; first < words; first += WIDE, to += inputs * WIDE) {
        std::int32_t at[WIDE];  // in numbers: enough for a weight of 8 GB
        for (Index lane = 0; lane < WIDE; ++lane) {
            const Index from_word = word[first + lane < words ? first + lane : 0];
            at[lane] = static_cast<std::int32_t>(from_word / WIDE * inputs * WIDE + from_word % WIDE);
        }
        for (Index i = 0; i < inputs; ++i) {
#pragma omp simd
            for (Index lane = 0; lane < WIDE; ++lane) to[i * WIDE + lane] = from[i * WIDE + at[lane]];
        }
    }
}

#ifdef __AVX512VNNI__
// The sums of four vectors.
inline __m128i sums_of_four(const __m512i* each) {
    const __m512i low = _mm512_add_epi32(_mm512_unpacklo_epi32(each[0], each[1]),
                                         _mm512_unpackhi_epi32(each[0], each[1]));
    const __m512i high = _mm512_add_epi32(_mm512_unpacklo_epi32(each[2], each[3]),
                                          _mm512_unpackhi_epi32(each[2], each[3]));
    const __m512i four = _mm512_add_epi32(_mm512_unpacklo_epi64(low, high), _mm512_unpackhi_epi64(low, high));
    const __m256i two = _mm256_add_epi32(_mm512_castsi512_si256(four), _mm512_extracti64x4_epi64(four, 1));
    return _mm_add_epi32(_mm256_castsi256_si128(two), _mm256_extracti128_si256(two, 1));
}

// What rows of x make with up to DEEP words. Behind a row of x stands what zeros are multiplied by.
template <int rows>
inline void listed_tile(const std::uint8_t* x_NI, const float* scale_N, const std::int8_t* row_OI, const Index* word,
                        const Weight& weight, Index first, float* y_NO, Index room, Index columns) {
    const Index length = (room + VECTOR - 1) / VECTOR * VECTOR;
    alignas(64) std::int32_t sums[rows][DEEP] = {};
    for (Index place = 0; place < columns; place += 4) {
        const std::int8_t* from[4];
        for (int w = 0; w < 4; ++w) from[w] = row_OI + word[std::min(place + w, columns - 1)] * length;
        __m512i sum[rows][4];
        for (int n = 0; n < rows; ++n) {
            for (int w = 0; w < 4; ++w) sum[n][w] = _mm512_setzero_si512();
        }
        for (Index i = 0; i < length; i += VECTOR) {
            __m512i four[4];
            for (int w = 0; w < 4; ++w) four[w] = _mm512_loadu_si512(from[w] + i);
            for (int n = 0; n < rows; ++n) {
                const __m512i x = _mm512_loadu_si512(x_NI + n * room + i);
                for (int w = 0; w < 4; ++w) sum[n][w] = _mm512_dpbusd_epi32(sum[n][w], x, four[w]);
            }
        }
        for (int n = 0; n < rows; ++n) {
            _mm_store_si128(reinterpret_cast<__m128i*>(&sums[n][place]), sums_of_four(sum[n]));
        }
    }
    for (int n = 0; n < rows; ++n) {
        __m512i sum[4];
        for (int v = 0; v < 4; ++v) sum[v] = _mm512_load_si512(&sums[n][v * LANES]);
        whole_row(sum, scale_N[n], weight, first, y_NO + n * weight.outputs, columns, Activation::identity);
    }
}
#elif defined(__AVX2__)
// The sums of four vectors.
inline __m128i sums_of_four(const __m256i* each) {
    const __m256i four = _mm256_hadd_epi32(_mm256_hadd_epi32(each[0], each[1]), _mm256_hadd_epi32(each[2], each[3]));
    return _mm_add_epi32(_mm256_castsi256_si128(four), _mm256_extracti128_si256(four, 1));
}

// What rows of x make with up to DEEP words. Behind a row of x stands what zeros are multiplied by.
template <int rows>
inline void listed_tile(const std::uint8_t* x_NI, const float* scale_N, const std::int8_t* row_OI, const Index* word,
                        const Weight& weight, Index first, float* y_NO, Index room, Index columns) {
    constexpr Index half = VECTOR / 4;  // numbers of 16 bits in a register
    const Index length = (room + VECTOR - 1) / VECTOR * VECTOR;
    std::int32_t sums[rows][DEEP] = {};
    for (Index place = 0; place < columns; place += 4) {
        const std::int8_t* from[4];
        for (int w = 0; w < 4; ++w) from[w] = row_OI + word[std::min(place + w, columns - 1)] * length;
        __m256i sum[rows][4];
        for (int n = 0; n < rows; ++n) {
            for (int w = 0; w < 4; ++w) sum[n][w] = _mm256_setzero_si256();
        }
        for (Index i = 0; i < length; i += half) {
            __m256i x[rows];
            for (int n = 0; n < rows; ++n) {
                x[n] = _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(x_NI + n * room + i)));
            }
            for (int w = 0; w < 4; ++w) {
                const __m256i four = _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from[w] + i)));
                for (int n = 0; n < rows; ++n) sum[n][w] = _mm256_add_epi32(sum[n][w], _mm256_madd_epi16(x[n], four));
            }
        }
        for (int n = 0; n < rows; ++n) {
            _mm_storeu_si128(reinterpret_cast<__m128i*>(&sums[n][place]), sums_of_four(sum[n]));
        }
    }
    for (int n = 0; n < rows; ++n) {
        whole_row(sums[n], scale_N[n], weight, first, y_NO + n * weight.outputs, columns, Activation::identity);
    }
}
#endif

class Shortlist {
  public:
    Shortlist(const Weight& all, const Lists& lists, Index sources)
        : all_(all), lists_(lists), whole_(all.scale_O != nullptr), panel_B_(sources + 1) {
        for (Index b = 0; b < sources; ++b) {
            const Index panels = whole_ ? 0 : (lists.count(b) + WIDE - 1) / WIDE;
            panel_B_[b + 1] = panel_B_[b] + panels * WIDE * all.inputs;
            longest_ = std::max(longest_, lists.count(b));
        }
        const Index words = lists.first_B[sources];
        panels_.reset(new float[panel_B_[sources]]);
        if (whole_) {
            scale_.resize(words);
            above_.resize(words);
        }
        if (all.bias_O) bias_.resize(words);
#pragma omp parallel for schedule(static)
        for (Index b = 0; b < sources; ++b) lay_out(b);
    }

    const Index* words(Index source) const { return lists_.words(source); }
    Index count(Index source) const { return lists_.count(source); }
    Index longest() const { return longest_; }

    // What rows of this source say of its words.
    void multiply(Index source, const float* x_NI, float* y_NL, Index rows) const {
        float_linear(weight(source), x_NI, y_NL, rows);
    }

    // The same of rows that are whole numbers already, with room for SPARE more behind them.
    void multiply([[maybe_unused]] Index source, [[maybe_unused]] const std::uint8_t* x_NI,
                  [[maybe_unused]] const float* scale_N, [[maybe_unused]] float* y_NL,
                  [[maybe_unused]] Index rows) const {
#ifdef __AVX2__
        const Weight own = weight(source);
        const Index room = (own.inputs + QUADS - 1) / QUADS * QUADS;
        for (Index first = 0; first < own.outputs; first += DEEP) {
            tiles<WHOLE_TILE>(rows, [&](auto size, Index n) {
                listed_tile<decltype(size)::value>(x_NI + n * room, scale_N + n, lists_.row_OI,
                                                   words(source) + first, own, first, y_NL + n * own.outputs + first,
                                                   room, std::min(DEEP, own.outputs - first));
            });
        }
#endif
    }

  private:
    Weight weight(Index source) const {
        const Index first = lists_.first_B[source];
        return {panels_.get() + panel_B_[source], whole_ ? scale_.data() + first : nullptr,
                whole_ ? above_.data() + first : nullptr, all_.bias_O ? bias_.data() + first : nullptr,
                all_.inputs, lists_.count(source)};
    }

    void lay_out(Index source) {
        const Index *word = words(source), words = count(source), first = lists_.first_B[source];
        if (!whole_) {
            gather(static_cast<const float*>(all_.panels), word, words, all_.inputs,
                   panels_.get() + panel_B_[source]);
        }
        for (Index place = 0; place < words; ++place) {
            if (whole_) scale_[first + place] = all_.scale_O[word[place]];
            if (whole_) above_[first + place] = all_.above_O[word[place]];
            if (all_.bias_O) bias_[first + place] = all_.bias_O[word[place]];
        }
    }

    const Weight& all_;
    Lists lists_;
    bool whole_;
    Index longest_ = 0;
    std::vector<Index> panel_B_;
    std::unique_ptr<float[]> panels_;
    std::vector<float> scale_, bias_;
    std::vector<std::int32_t> above_;
};

}  // namespace transduce
