// Which continuations of its hypotheses a sentence goes on with: as `transduce.search.beam_selection.likeliest` says.
//
// Shapes: B sentences, N hypotheses ordered by sentence and slot, C continuations of each, M continuations taken, at most
// all free slots.
#pragma once

#include <algorithm>
#include <vector>

#include "numbers.h"

namespace transduce {

struct Candidate {
    double total;
    Index row, column;
};

// taken_3M: parents, columns, slots, in three rows of `room` each; count: M.
inline void likeliest(const Index* sentence_N, const double* total_N, const double* value_NC, const Index* slots_B,
                      Index rows, Index columns, double prune, Index* taken_3M, Index room, Index* count) {
    std::vector<Candidate> candidates;
    Index taken = 0;
    for (Index first = 0, last = 0; first < rows; first = last) {
        candidates.clear();
        double greatest = -INFINITY;
        for (last = first; last < rows && sentence_N[last] == sentence_N[first]; ++last) {
            for (Index c = 0; c < columns; ++c) {
                const double total = total_N[last] + value_NC[last * columns + c];
                if (total > -INFINITY) candidates.push_back({total, last, c});
                greatest = std::max(greatest, total);
            }
        }
        const auto pruned = [&](const Candidate& each) { return each.total < greatest - prune; };
        candidates.erase(std::remove_if(candidates.begin(), candidates.end(), pruned), candidates.end());
        // They came in order of slot and column, which a stable sort keeps among equals.
        std::stable_sort(candidates.begin(), candidates.end(),
                         [](const Candidate& left, const Candidate& right) { return left.total > right.total; });
        const Index free = std::min<Index>(slots_B[sentence_N[first]], static_cast<Index>(candidates.size()));
        for (Index slot = 0; slot < free; ++slot, ++taken) {
            taken_3M[taken] = candidates[slot].row;
            taken_3M[room + taken] = candidates[slot].column;
            taken_3M[2 * room + taken] = slot;
        }
    }
    *count = taken;
}

}  // namespace transduce
