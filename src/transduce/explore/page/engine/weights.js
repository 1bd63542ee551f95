/* From scores to attention weights: normalizers, and what is changed inside them (attention/interventions.py). */
"use strict";
(function (T) {
  const E = (T.engine ??= {});
  const HALF_WINDOW = 10;

  /** Each: (scores, allowed, query, place, parts, previous) -> weights; allowed: whether each key may be attended to;
      previous: the weights of the query before, null for the first. */
  E.NORMALIZERS = {
    softmax,
    sparsemax: (scores, allowed) => thresholded(centred(scores, allowed), 1),
    entmax: (scores, allowed) => thresholded(centred(scores, allowed).map((score) => score / 2), 2),
    hard: oneOf,
    gumbel: oneOf,
    local_monotonic(scores, allowed, query, place) {
      const number = numbered(allowed);
      const centre = Math.min(place, number.at(-1));
      return softmax(scores, allowed.map((may, s) => may && Math.abs(number[s] - centre) <= HALF_WINDOW));
    },
    local_predictive(scores, allowed, query, place, { query: inner, reader_E }) {
      const number = numbered(allowed);
      const hidden = E.linear(query, 1, inner.weight).map(Math.tanh);
      const share = 1 / (1 + Math.exp(-E.dot(hidden, 0, reader_E.data, 0, hidden.length)));
      const away = number.map((each) => each - (number.at(-1) + 1) * share);
      const near = allowed.map((may, s) => may && Math.abs(away[s]) <= HALF_WINDOW);
      return softmax(scores, near).map((weight, s) => weight * Math.exp(-2 * (away[s] / HALF_WINDOW) ** 2));
    },
    monotonic(scores, allowed, query, place, { offset }, previous) {
      let [reached, stopped] = [0, true]; // q_s of Raffel et al. 2017, equation 13, with stops of 0 or 1
      return scores.map((score, s) => {
        reached = (stopped ? 0 : reached) + (previous ? previous[s] : Number(s === 0));
        stopped = allowed[s] && score + offset.data[0] > 0;
        return stopped ? reached : 0;
      });
    },
  };

  function softmax(scores, allowed) {
    let greatest = -Infinity;
    scores.forEach((score, s) => (greatest = allowed[s] ? Math.max(greatest, score) : greatest));
    const powers = scores.map((score, s) => (allowed[s] ? Math.exp(score - greatest) : 0));
    const mass = powers.reduce((sum, each) => sum + each, 0);
    return powers.map((each) => each / mass);
  }

  function oneOf(scores, allowed) {
    let best = -1;
    scores.forEach((score, s) => (best = allowed[s] && (best < 0 || score > scores[best]) ? s : best));
    return scores.map((_, s) => (s === best ? 1 : 0));
  }

  function centred(scores, allowed) {
    const greatest = Math.max(...scores.filter((_, s) => allowed[s]));
    return scores.map((score, s) => (allowed[s] ? score - greatest : -Infinity));
  }

  /** [e - tau]+ of sum 1, or of order 2 its square: the threshold is found among the sorted scores. */
  function thresholded(scores, power) {
    const sorted = Array.from(scores).sort((a, b) => b - a);
    let threshold = 0;
    for (let count = 1, sum = 0, squares = 0; count <= sorted.length && sorted[count - 1] > -Infinity; ++count) {
      sum += sorted[count - 1];
      squares += sorted[count - 1] ** 2;
      const mean = sum / count;
      const spread = squares - count * mean ** 2;
      const here = power === 1 ? (sum - 1) / count : mean - Math.sqrt(Math.max(0, (1 - spread) / count));
      if (here >= sorted[count - 1]) break;
      threshold = here;
    }
    return scores.map((score) => Math.max(0, score - threshold) ** power);
  }

  /** Each key's number among the allowed ones, from 0. */
  function numbered(allowed) {
    let count = -1;
    return Array.from(allowed, (may) => (count += may ? 1 : 0));
  }

  /**
   * The weights of one query of one head.
   * changes: {cut, uniform, argmax, temperature}, lists of {name, head, query, key, value}, all but name optional; of
   * temperature `value` is what scores are divided by.
   */
  E.weighed = (normalizer, parts, scores, allowed, query, at, changes, previous = null) => {
    const { cut = [], uniform = [], argmax = [], temperature = [] } = changes || {};
    const here = (place, key) => ["name", "head", "query"].every((each) => (place[each] ?? at[each]) === at[each]) &&
      (place.key ?? key) === key;
    const may = allowed.map((is, s) => is && !cut.some((place) => here(place, s)));
    if (!may.some((is) => is)) return new Float64Array(scores.length);
    for (const place of temperature.filter((each) => here(each))) scores = scores.map((score) => score / place.value);
    if (argmax.some((place) => here(place))) return oneOf(scores, may);
    if (uniform.some((place) => here(place))) {
      const count = may.filter((is) => is).length;
      return scores.map((_, s) => (may[s] ? 1 / count : 0));
    }
    return E.NORMALIZERS[normalizer](scores, may, query, at.query, parts, previous);
  };
})(window.Transduce);
