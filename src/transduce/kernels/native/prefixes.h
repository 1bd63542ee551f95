// The likeliest outputs of CTC, place by place (Graves and Jaitly 2014, algorithm 1), perhaps with a language model of
// n-grams (Hannun et al. 2014, algorithm 1).
//
// Shapes: B rows, P places, K tokens of a place, L lengths of a context.
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

// `KneserNey` of data/kneser_ney.py, whose levels lie one behind the other, each from `first` on; its root, and a weight.
struct NgramModel {
    const Index *key, *first;
    const double *share, *rest, *root, *weight;
    Index levels, vocabulary, end;

    Index lengths() const { return std::max<Index>(1, levels - 1); }

    void begin(Index* context_L) const {
        std::fill(context_L, context_L + lengths(), -1);
        context_L[0] = end;
    }
    // The weighed log-probability of a token after a context, and the context after it.
    double extend(const Index* context_L, Index token, Index* longer_L) const {
        double found = share[token] + *root / vocabulary;
        longer_L[0] = token;
        for (Index l = 1; l < levels; ++l) {
            Index place = -1;
            if (context_L[l - 1] >= 0) {
                found *= rest[first[l - 1] + context_L[l - 1]];
                const Index wanted = context_L[l - 1] * vocabulary + token;
                const Index* there = std::lower_bound(key + first[l], key + first[l + 1], wanted);
                if (there != key + first[l + 1] && *there == wanted) {
                    place = there - (key + first[l]);
                    found += share[first[l] + place];
                }
            }
            if (l < levels - 1) longer_L[l] = place;
        }
        return *weight * std::log(found);
    }
};

// Outputs as a tree: each is a node, its last token, and the node of what stands before. Node 0 says nothing.
class PrefixTree {
public:
    // model: null for none.
    PrefixTree(Index vocabulary, const NgramModel* model)
        : vocabulary_(vocabulary), model_(model), nodes_{{-1, -1, 0, 0.0}} {
        if (!model_) return;
        contexts_.resize(model_->lengths());
        model_->begin(contexts_.data());
    }

    Index longer(Index node, Index token) {
        const auto [found, is_new] = children_.try_emplace(node * vocabulary_ + token, size());
        if (is_new) nodes_.push_back({node, token, nodes_[node].length + 1, likely_after(node, token)});
        return found->second;
    }
    // What the language model says of it, weighed.
    double likely(Index node) const { return nodes_[node].likely; }
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
        double likely;
    };

    double likely_after(Index node, Index token) {
        if (!model_) return 0.0;
        const Index lengths = model_->lengths(), last = static_cast<Index>(contexts_.size());
        contexts_.resize(last + lengths);
        const double more = model_->extend(contexts_.data() + node * lengths, token, contexts_.data() + last);
        return nodes_[node].likely + more;
    }

    Index vocabulary_;
    const NgramModel* model_;
    std::vector<Node> nodes_;
    std::vector<Index> contexts_;  // of each node, L of them
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
            const double first = one.whole() + prefixes.likely(one.node);
            const double second = other.whole() + prefixes.likely(other.node);
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
// model: null for none.
inline void ctc_prefixes(const double* value_BPK, const Index* token_BPK, const double* blank_BP, const Index* places_B,
                         Index rows, Index places, Index count, Index vocabulary, Index blank, Index beam,
                         const NgramModel* model, Index* output_BNP, Index* length_BN) {
#pragma omp parallel for schedule(dynamic)
    for (Index b = 0; b < rows; ++b) {
        PrefixTree prefixes(vocabulary, model);
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
