// Logits to log-probabilities, and the greatest of each row.
//
// Shapes: N rows, V columns, C columns kept.
#pragma once

#include <vector>

#include "numbers.h"

namespace transduce {

// x - log sum exp x of each row, in place.
inline void log_softmax(float* x_NV, Index rows, Index columns) {
#pragma omp parallel for schedule(static)
    for (Index n = 0; n < rows; ++n) {
        float* x = x_NV + n * columns;
        float greatest = -INFINITY, mass = 0;
#pragma omp simd reduction(max : greatest)
        for (Index v = 0; v < columns; ++v) greatest = x[v] > greatest ? x[v] : greatest;
#pragma omp simd reduction(+ : mass)
        for (Index v = 0; v < columns; ++v) mass += exponential(x[v] - greatest);
        const float away = greatest + static_cast<float>(std::log(static_cast<double>(mass)));
#pragma omp simd
        for (Index v = 0; v < columns; ++v) x[v] -= away;
    }
}

// The `count` greatest of each row, greatest first, of equal ones the lower column; columns in `without` count as -inf.
inline void top(const float* x_NV, Index rows, Index columns, const Index* without, Index barred,
                Index count, double* value_NC, Index* column_NC) {
    constexpr Index STRIP = 64;
#pragma omp parallel for schedule(static)
    for (Index n = 0; n < rows; ++n) {
        const float* x = x_NV + n * columns;
        std::vector<float> value(count + 1, -INFINITY);
        std::vector<Index> column(count + 1, -1);
        Index found = 0;
        const auto offer = [&](Index v) {
            for (Index f = 0; f < barred; ++f) {
                if (without[f] == v) return;
            }
            Index place = found < count ? found++ : count;
            for (; place > 0 && value[place - 1] < x[v]; --place) {
                value[place] = value[place - 1];
                column[place] = column[place - 1];
            }
            value[place] = x[v];
            column[place] = v;
        };
        for (Index first = 0; first < columns; first += STRIP) {
            const Index last = first + STRIP < columns ? first + STRIP : columns;
            if (found == count) {
                float greatest = -INFINITY;
#pragma omp simd reduction(max : greatest)
                for (Index v = first; v < last; ++v) greatest = x[v] > greatest ? x[v] : greatest;
                if (!(greatest > value[count - 1])) continue;
            }
            for (Index v = first; v < last; ++v) {
                if (found < count || x[v] > value[count - 1]) offer(v);
            }
        }
        Index next = 0;
        for (; found < count; ++found) {  // fewer columns than asked for that may be said: the barred ones, as -inf
            value[found] = -INFINITY;
            column[found] = next < barred ? without[next++] : 0;
        }
        for (Index c = 0; c < count; ++c) {
            value_NC[n * count + c] = value[c];
            column_NC[n * count + c] = column[c];
        }
    }
}

}  // namespace transduce
