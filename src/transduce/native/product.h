// Products of matrices so small that they stay in the cache: those of one attention head.
//
// Shapes: M rows, N columns (a multiple of LANES), K what is summed over.
#pragma once

#include "numbers.h"

namespace transduce {

constexpr Index LANES = 16;

typedef float Lanes __attribute__((vector_size(LANES * sizeof(float)), aligned(4)));

inline Index padded(Index columns) { return (columns + LANES - 1) / LANES * LANES; }

// Element (m, k) of a matrix that may lie transposed.
struct Left {
    const float* start;
    Index row, column;
};

template <int rows, int vectors>
inline void tile(Left a_MK, const float* b_KN, Index b_row, float* c_MN, Index c_row, Index depth, bool add) {
    Lanes sum[rows][vectors];
    for (int m = 0; m < rows; ++m) {
        for (int v = 0; v < vectors; ++v) {
            sum[m][v] = add ? *reinterpret_cast<const Lanes*>(c_MN + m * c_row + v * LANES) : Lanes{};
        }
    }
    for (Index k = 0; k < depth; ++k) {
        Lanes b[vectors];
        for (int v = 0; v < vectors; ++v) b[v] = *reinterpret_cast<const Lanes*>(b_KN + k * b_row + v * LANES);
        for (int m = 0; m < rows; ++m) {
            const float a = a_MK.start[m * a_MK.row + k * a_MK.column];
            for (int v = 0; v < vectors; ++v) sum[m][v] += a * b[v];
        }
    }
    for (int m = 0; m < rows; ++m) {
        for (int v = 0; v < vectors; ++v) *reinterpret_cast<Lanes*>(c_MN + m * c_row + v * LANES) = sum[m][v];
    }
}

template <int vectors>
inline void strip(Left a_MK, const float* b_KN, Index b_row, float* c_MN, Index c_row, Index rows, Index depth,
                  bool add) {
    for (; rows > 4; rows -= 4, a_MK.start += 4 * a_MK.row, c_MN += 4 * c_row) {
        tile<4, vectors>(a_MK, b_KN, b_row, c_MN, c_row, depth, add);
    }
    if (rows == 4) tile<4, vectors>(a_MK, b_KN, b_row, c_MN, c_row, depth, add);
    if (rows == 3) tile<3, vectors>(a_MK, b_KN, b_row, c_MN, c_row, depth, add);
    if (rows == 2) tile<2, vectors>(a_MK, b_KN, b_row, c_MN, c_row, depth, add);
    if (rows == 1) tile<1, vectors>(a_MK, b_KN, b_row, c_MN, c_row, depth, add);
}

// C = A B, or C + A B.
inline void multiply(Left a_MK, const float* b_KN, Index b_row, float* c_MN, Index c_row, Index rows, Index columns,
                     Index depth, bool add = false) {
    Index n = 0;
    for (; n + 2 * LANES <= columns; n += 2 * LANES) strip<2>(a_MK, b_KN + n, b_row, c_MN + n, c_row, rows, depth, add);
    for (; n < columns; n += LANES) strip<1>(a_MK, b_KN + n, b_row, c_MN + n, c_row, rows, depth, add);
}

}  // namespace transduce
