// Logits to log-probabilities, and the greatest of each row.
//
// Shapes: N rows, V columns, C columns kept.
#pragma once

#include <algorithm>

#include "numbers.h"

namespace transduce {

// log sum exp x.
inline float log_sum(const float* x, Index columns) {
    float greatest = -INFINITY, mass = 0;
#pragma omp simd reduction(max : greatest)
    for (Index v = 0; v < columns; ++v) greatest = x[v] > greatest ? x[v] : greatest;
#pragma omp simd reduction(+ : mass)
    for (Index v = 0; v < columns; ++v) mass += exponential(x[v] - greatest);
    return greatest + static_cast<float>(std::log(static_cast<double>(mass)));
}

// x - log sum exp x of each row, in place.
inline void log_softmax(float* x_NV, Index rows, Index columns) {
#pragma omp parallel for schedule(static)
    for (Index n = 0; n < rows; ++n) {
        float* x = x_NV + n * columns;
        const float away = log_sum(x, columns);
#pragma omp simd
        for (Index v = 0; v < columns; ++v) x[v] -= away;
    }
}

// The columns that count as -inf.
struct Barred {
    const Index* column;
    Index count;
    bool holds(Index v) const { return std::find(column, column + count, v) != column + count; }
};

// The `count` greatest of x - away, greatest first, of equal ones the lower column.
inline void top_of_row(const float* x, float away, Index columns, Barred barred, Index count, double* value_C,
                       Index* column_C) {
    constexpr Index STRIP = 64;
    Index found = 0;
    const auto offer = [&](Index v) {
        if (barred.holds(v)) return;
        const double value = x[v] - away;
        Index place = found < count ? found++ : count - 1;
        for (; place > 0 && value_C[place - 1] < value; --place) {
            value_C[place] = value_C[place - 1];
            column_C[place] = column_C[place - 1];
        }
        value_C[place] = value;
        column_C[place] = v;
    };
    for (Index first = 0; first < columns; first += STRIP) {
        const Index last = std::min(first + STRIP, columns);
        if (found == count) {
            float greatest = -INFINITY;
#pragma omp simd reduction(max : greatest)
            for (Index v = first; v < last; ++v) greatest = x[v] > greatest ? x[v] : greatest;
            if (!(greatest - away > value_C[count - 1])) continue;
        }
        for (Index v = first; v < last; ++v) {
            if (found < count || x[v] - away > value_C[count - 1]) offer(v);
        }
    }
    for (Index next = 0; found < count; ++found) {  // fewer columns than asked for that may be said: barred ones
        value_C[found] = -INFINITY;
        column_C[found] = next < barred.count ? barred.column[next++] : 0;
    }
}

inline void top(const float* x_NV, Index rows, Index columns, const Index* without, Index barred,
                Index count, double* value_NC, Index* column_NC) {
#pragma omp parallel for schedule(static)
    for (Index n = 0; n < rows; ++n) {
        top_of_row(x_NV + n * columns, 0, columns, {without, barred}, count, value_NC + n * count,
                   column_NC + n * count);
    }
}

}  // namespace transduce
