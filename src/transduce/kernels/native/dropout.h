// Dropout with a residual connection, which remembers its seed instead of its mask.
//
//     y = x + d f,   d = 256 / (256 - threshold) where the element's random byte is at least threshold, else 0
//
// Shapes: N elements of all.
#pragma once

#include "numbers.h"

namespace transduce {

constexpr Index BYTES = 8;       // elements that one draw decides
constexpr Index STRETCH = 4096;  // elements that one thread takes at once; a multiple of BYTES

// Calls work(first element, how many, their bytes, the least byte that keeps one, the factor of those kept).
template <typename Work>
inline void with_factors(Index count, Index threshold, std::uint64_t seed, Work work) {
    const float scale = 256.0f / (256 - threshold);
    const Index stretches = (count + STRETCH - 1) / STRETCH;
#pragma omp parallel for schedule(static)
    for (Index stretch = 0; stretch < stretches; ++stretch) {
        alignas(64) std::uint64_t words[STRETCH / BYTES];
        const Index first = stretch * STRETCH, number = count - first < STRETCH ? count - first : STRETCH;
#pragma omp simd
        for (Index word = 0; word < STRETCH / BYTES; ++word) words[word] = random_bits(seed, first / BYTES + word);
        const std::uint8_t* bytes = reinterpret_cast<const std::uint8_t*>(words);
        const std::uint8_t least = static_cast<std::uint8_t>(threshold);
        work(first, number, bytes, least, scale);
    }
}

template <typename T, typename R>
void add_dropped(const R* x_N, const T* f_N, R* y_N, Index count, Index threshold, std::uint64_t seed) {
    with_factors(count, threshold, seed, [=](Index first, Index number, const std::uint8_t* byte, std::uint8_t least,
                                             float scale) {
        const R* x = x_N + first;
        const T* f = f_N + first;
        R* y = y_N + first;
#pragma omp simd
        for (Index n = 0; n < number; ++n) store(y[n], load(x[n]) + (byte[n] >= least ? scale : 0.0f) * load(f[n]));
    });
}

// y = d f; with f a gradient, the gradient of f above.
template <typename T, typename R>
void dropped(const R* f_N, T* y_N, Index count, Index threshold, std::uint64_t seed) {
    with_factors(count, threshold, seed,
                 [=](Index first, Index number, const std::uint8_t* byte, std::uint8_t least, float scale) {
                     const R* f = f_N + first;
                     T* y = y_N + first;
#pragma omp simd
                     for (Index n = 0; n < number; ++n) store(y[n], (byte[n] >= least ? scale : 0.0f) * load(f[n]));
                 });
}

}  // namespace transduce
