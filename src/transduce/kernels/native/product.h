// Products of matrices so small that they stay in the cache: those of one attention head, and panels of a weight.
//
// Shapes: M rows, N columns (a multiple of LANES), K what is summed over.
#pragma once

#include <type_traits>

#include "numbers.h"

namespace transduce {

constexpr Index LANES = 16;

// Floats of one register. Wider vectors would live in memory: a compiler takes them apart, and spills the parts.
#if defined(__AVX512F__)
constexpr Index NATIVE = 16;
#elif defined(__AVX__)
constexpr Index NATIVE = 8;
#else
constexpr Index NATIVE = 4;
#endif

typedef float Native __attribute__((vector_size(NATIVE * sizeof(float)), aligned(4)));

inline Index padded(Index columns) { return (columns + LANES - 1) / LANES * LANES; }

// Element (m, k) of a matrix that may lie transposed.
struct Left {
    const float* start;
    Index row, column;
};

// A few columns of `tile`, whose sums all stay in registers.
template <int rows, int vectors>
inline void narrow_tile(Left a_MK, const float* b_KN, Index b_row, float* c_MN, Index c_row, Index depth, bool add) {
    Native sum[rows][vectors];
    for (int m = 0; m < rows; ++m) {
        for (int v = 0; v < vectors; ++v) {
            sum[m][v] = add ? *reinterpret_cast<const Native*>(c_MN + m * c_row + v * NATIVE) : Native{};
        }
    }
    for (Index k = 0; k < depth; ++k) {
        Native b[vectors];
        for (int v = 0; v < vectors; ++v) b[v] = *reinterpret_cast<const Native*>(b_KN + k * b_row + v * NATIVE);
        for (int m = 0; m < rows; ++m) {
            const float a = a_MK.start[m * a_MK.row + k * a_MK.column];
            for (int v = 0; v < vectors; ++v) sum[m][v] += a * b[v];
        }
    }
    for (int m = 0; m < rows; ++m) {
        for (int v = 0; v < vectors; ++v) *reinterpret_cast<Native*>(c_MN + m * c_row + v * NATIVE) = sum[m][v];
    }
}

// `vectors` of LANES columns, as many at a time as there are registers for: 32 of AVX-512 hold them all, 16 two a row.
template <int rows, int vectors>
inline void tile(Left a_MK, const float* b_KN, Index b_row, float* c_MN, Index c_row, Index depth, bool add) {
    constexpr int at_once = NATIVE == LANES ? vectors : 2;
    for (Index n = 0; n < vectors * LANES; n += at_once * NATIVE) {
        narrow_tile<rows, at_once>(a_MK, b_KN + n, b_row, c_MN + n, c_row, depth, add);
    }
}

// Calls work(number of rows as a constant, first row) for tiles of `most` rows, and for those that are left over.
template <int most, typename Work>
inline void tiles(Index rows, Work work, Index first = 0) {
    for (; first + most <= rows; first += most) work(std::integral_constant<int, most>{}, first);
    if constexpr (most > 1) tiles<most - 1>(rows, work, first);
}

template <int vectors>
inline void strip(Left a_MK, const float* b_KN, Index b_row, float* c_MN, Index c_row, Index rows, Index depth,
                  bool add) {
    tiles<4>(rows, [&](auto size, Index m) {
        const Left from{a_MK.start + m * a_MK.row, a_MK.row, a_MK.column};
        tile<decltype(size)::value, vectors>(from, b_KN, b_row, c_MN + m * c_row, c_row, depth, add);
    });
}

// C = A B, or C + A B.
inline void multiply(Left a_MK, const float* b_KN, Index b_row, float* c_MN, Index c_row, Index rows, Index columns,
                     Index depth, bool add = false) {
    Index n = 0;
    for (; n + 2 * LANES <= columns; n += 2 * LANES) strip<2>(a_MK, b_KN + n, b_row, c_MN + n, c_row, rows, depth, add);
    for (; n < columns; n += LANES) strip<1>(a_MK, b_KN + n, b_row, c_MN + n, c_row, rows, depth, add);
}

}  // namespace transduce
