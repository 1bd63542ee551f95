// The likeliest outputs of CTC, place by place (Graves and Jaitly 2014, algorithm 1, without a language model).
//
// Shapes: B rows, P places, K tokens of a place.
#pragma once

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <vector>

#include "numbers.h"

namespace transduce {

// log(e^x + e^y).
inline double log_add(double x, double y) {
    const double less = std::min(x, y), more = std::max(x, y);
    return less == -INFINITY ? more : more + std::log1p(std::exp(less - more));
}

// Outputs as a tree: each is a node, its last token, and the node of what stands before. Node 0 says nothing.
class PrefixTree {
public:
    explicit PrefixTree(Index vocabulary) : vocabulary_(vocabulary), nodes_{{-1, -1, 0}} {}

    Index longer(Index node, Index token) {
        const auto [found, is_new] = children_.try_emplace(node * vocabulary_ + token, size());
        if (is_new) nodes_.push_back({node, token, nodes_[node].length + 1});
        return found->second;
    }
    Index size() const { return static_cast<Index>(nodes_.size()); }
    Index last(Index node) const { return nodes_[node].token; }
    Index length(Index node) const { return nodes_[node].length; }

    void write(Index node, Index* output) const {
        for (; node != 0; node = nodes_[node].before) output[nodes_[node].length - 1] = nodes_[node].token;
    }
    // Whether an output stands before another in a dictionary of tokens.
    bool before(Index one, Index other) const {
        std::vector<Index> first(length(one)), second(length(other));
        write(one, first.data());
        write(other, second.data());
        return first < second;
    }

private:
    struct Node {
        Index before, token, length;
    };
    Index vocabulary_;
    std::vector<Node> nodes_;
    std::unordered_map<Index, Index> children_;
};

// An output with the log-probabilities of the alignments so far that end in a blank, and in its last token.
struct Kept {
    Index node;
    double blank, token;
    double whole() const { return log_add(blank, token); }
};

// The `beam` best outputs after all places of one row.
inline std::vector<Kept> likeliest_prefixes(PrefixTree& prefixes, const double* value_PK, const Index* token_PK,
                                            const double* blank_P, Index places, Index count, Index blank, Index beam) {
    std::vector<Kept> kept{{0, 0, -INFINITY}}, after;
    std::vector<Index> slots{-1};  // of each node: where it stands in `after`
    const auto slot = [&](Index node) -> Kept& {
        if (static_cast<std::size_t>(node) >= slots.size()) slots.resize(prefixes.size(), -1);
        if (slots[node] < 0) {
            slots[node] = static_cast<Index>(after.size());
            after.push_back({node, -INFINITY, -INFINITY});
        }
        return after[slots[node]];
    };
    for (Index p = 0; p < places; ++p) {
        for (const Kept& each : kept) {
            const double whole = each.whole();
            Kept& same = slot(each.node);
            same.blank = log_add(same.blank, whole + blank_P[p]);
            for (Index k = 0; k < count; ++k) {
                const Index token = token_PK[p * count + k];
                const double more = value_PK[p * count + k];
                if (token == blank || more == -INFINITY) continue;
                const bool repeats = prefixes.last(each.node) == token;
                if (repeats) {
                    Kept& again = slot(each.node);
                    again.token = log_add(again.token, each.token + more);
                }
                Kept& longer = slot(prefixes.longer(each.node, token));
                longer.token = log_add(longer.token, (repeats ? each.blank : whole) + more);
            }
        }
        for (const Kept& each : after) slots[each.node] = -1;
        const auto better = [&](const Kept& one, const Kept& other) {
            const double first = one.whole(), second = other.whole();
            return first != second ? first > second : prefixes.before(one.node, other.node);
        };
        const Index most = std::min(beam, static_cast<Index>(after.size()));
        std::partial_sort(after.begin(), after.begin() + most, after.end(), better);
        kept.assign(after.begin(), after.begin() + most);
        after.clear();
    }
    return kept;
}

// For each row its outputs, best first: output_BNP from the left, length_BN their tokens, -1 where there are fewer.
inline void ctc_prefixes(const double* value_BPK, const Index* token_BPK, const double* blank_BP, const Index* places_B,
                         Index rows, Index places, Index count, Index vocabulary, Index blank, Index beam,
                         Index* output_BNP, Index* length_BN) {
#pragma omp parallel for schedule(dynamic)
    for (Index b = 0; b < rows; ++b) {
        PrefixTree prefixes(vocabulary);
        const Index first = b * places;
        const auto kept = likeliest_prefixes(prefixes, value_BPK + first * count, token_BPK + first * count,
                                             blank_BP + first, places_B[b], count, blank, beam);
        for (Index n = 0; n < beam; ++n) {
            const bool there = n < static_cast<Index>(kept.size());
            length_BN[b * beam + n] = there ? prefixes.length(kept[n].node) : -1;
            if (there) prefixes.write(kept[n].node, output_BNP + (b * beam + n) * places);
        }
    }
}

}  // namespace transduce
