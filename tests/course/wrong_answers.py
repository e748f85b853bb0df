"""Wrong answers that students give, per lesson and exercise, each a typical mistake."""

WRONG = {
    "lesson1_hallucination": {
        "exists": [
            """
def exists(task, name):  # of any client
    return any(spec.name == name for spec in index.specs)""",
            """
def exists(task, name):  # that anything was called
    return name is not None""",
        ],
        "shares": [
            """
def valid_shares(table):  # percent
    return (100 * table.groupby("frequency").valid.mean()).to_dict()""",
            """
def valid_shares(table):  # of all tasks
    return (table.groupby("frequency").valid.sum() / len(table)).to_dict()""",
        ],
        "confidence": [
            """
def confidence(tokens):  # the mean
    return sum(p for _, p in tokens) / max(1, len(tokens))""",
            """
def confidence(tokens):  # the product
    return float(numpy.prod([p for _, p in tokens])) if tokens else 0.0""",
            """
def confidence(tokens):  # fails where nothing is named
    return min(p for _, p in tokens)""",
        ],
        "auroc": [
            """
def auroc(valid, confidence):  # a tie counts as won
    valid, confidence = numpy.asarray(valid), numpy.asarray(confidence)
    return (confidence[valid][:, None] >= confidence[~valid][None]).mean()""",
            """
def auroc(valid, confidence):  # turned round
    valid, confidence = numpy.asarray(valid), numpy.asarray(confidence)
    return (confidence[valid][:, None] < confidence[~valid][None]).mean()""",
            """
def auroc(valid, confidence):  # an accuracy
    return ((numpy.asarray(confidence) > 0.5) == numpy.asarray(valid)).mean()""",
        ],
        "threshold": [
            """
def largest_threshold(valid, confidence, most):  # disturbs of all calls
    return max(s / 100 for s in range(101) if (numpy.asarray(confidence) < s / 100).mean() <= most)""",
            """
def largest_threshold(valid, confidence, most):  # a call at the threshold counts
    of_valid = numpy.asarray(confidence)[numpy.asarray(valid, dtype=bool)]
    return max(s / 100 for s in range(101) if (of_valid <= s / 100).mean() <= most)""",
            """
def largest_threshold(valid, confidence, most):  # the smallest
    return 0.0""",
        ],
    },
    "lesson2_retrieval": {
        "expected": [
            """
def expected_share(hit_valid, miss_valid, precision):  # a share, not percent
    return precision * numpy.mean(hit_valid) + (1 - precision) * numpy.mean(miss_valid)""",
            """
def expected_share(hit_valid, miss_valid, precision):  # turned round
    return precision / 100 * numpy.mean(miss_valid) + (1 - precision / 100) * numpy.mean(hit_valid)""",
        ],
        "break_even": [
            """
def break_even(base, hit, miss):  # a number in any case
    return 100 * (base - miss) / (hit - miss)""",
            """
def break_even(base, hit, miss):  # a share, not percent
    return (base - miss) / (hit - miss) if hit > miss and miss <= base <= hit else None""",
            """
def break_even(base, hit, miss):  # also where the line falls
    return 100 * (base - miss) / (hit - miss) if hit != miss and 0 <= (base - miss) / (hit - miss) <= 1 else None""",
        ],
        "policy": [
            """
def retrieves(first, threshold):  # both at once
    return ~first["exists_anywhere"] & (first["minimum"] < threshold)""",
            """
def retrieves(first, threshold):  # confidence alone
    return first["minimum"] < threshold""",
            """
def retrieves(first, threshold):  # at the threshold, too
    return ~first["exists_anywhere"] | (first["minimum"] <= threshold)""",
        ],
        "best": [
            """
def best_threshold(answered, precision):  # the paper's
    return 0.8""",
            """
def best_threshold(answered, precision):  # whatever the precision
    def share(t):
        return outcome(answered, triggered(answered.first, "dag_confidence", t), 50).mean()
    return max([s / 20 for s in range(21)], key=share)""",
        ],
        "reciprocal": [
            """
def reciprocal_rank(ranking, wanted, k=20):  # counts from 0
    return next((1 / (at + 2) for at, name in enumerate(ranking[:k]) if name in wanted), 0.0)""",
            """
def reciprocal_rank(ranking, wanted, k=20):  # does not stop at k
    return next((1 / at for at, name in enumerate(ranking, 1) if name in wanted), 0.0)""",
            """
def reciprocal_rank(ranking, wanted, k=20):  # the last relevant one
    return max([0.0] + [1 / at for at, name in reversed(list(enumerate(ranking[:k], 1))) if name in wanted][:1])""",
        ],
    },
    "lesson3_decoding": {
        "deserves": [
            """
def deserves_mark(name, previous, suggestions):  # all that is offered
    return name in suggestions""",
            """
def deserves_mark(name, previous, suggestions):  # builtins behind a dot, too
    return name in suggestions and name not in BUILTINS | RECEIVERS and not name.startswith("__")""",
        ],
        "build": [
            """
def build(names):  # forgets where names end
    root = {}
    for name in names:
        node = root
        for token in name:
            node = node.setdefault(token, {})
    return root""",
            """
def build(names):  # marks the leaves alone
    root = {}
    for name in names:
        node = root
        for token in name:
            node.pop(None, None)
            node = node.setdefault(token, {})
        if not node:
            node[None] = True
    return root""",
        ],
        "choose": [
            """
def choose(trie, probabilities):  # goes on as long as it can
    chosen, node = (), trie
    while set(node) - {None}:
        likely = probabilities(chosen)
        best = max(set(node) - {None}, key=lambda token: float(likely[token]))
        chosen, node = (*chosen, best), node[best]
    return chosen""",
            """
def choose(trie, probabilities):  # asks the model once
    chosen, node, likely = (), trie, probabilities(())
    while None not in node:
        best = max(node, key=lambda token: float(likely[token]))
        chosen, node = (*chosen, best), node[best]
    return chosen""",
            """
def choose(trie, probabilities):  # one token
    likely = probabilities(())
    return (max(trie, key=lambda token: float(likely[token])),)""",
        ],
        "overruled": [
            """
def overruled(walked):  # everywhere, not only in names
    return [i for i, step in enumerate(walked.steps) if int(walked.probabilities[i].argmax()) != step.token]""",
            """
def overruled(walked):  # all choices
    return [i for i, step in enumerate(walked.steps) if step.allowed]""",
        ],
        "gate": [
            """
def passing(walks, gate):  # strictly above
    chances = [one.mark_probability(i) for one in walks for i, step in enumerate(one.steps) if step.mark]
    return sum(chance > gate for chance in chances) / len(chances)""",
            """
def passing(walks, gate):  # of all steps
    chances = [one.mark_probability(i) for one in walks for i, step in enumerate(one.steps)]
    return sum(chance >= gate for chance in chances) / len(chances)""",
        ],
    },
    "lesson4_claims": {
        "wilson": [
            """
def wilson(k, n):  # Wald's
    p = k / n
    return p - 1.96 * (p * (1 - p) / n) ** 0.5, p + 1.96 * (p * (1 - p) / n) ** 0.5""",
            """
def wilson(k, n):  # the right width around p
    p, z = k / n, 1.96
    half = z / (1 + z * z / n) * (p * (1 - p) / n + z * z / (4 * n * n)) ** 0.5
    return p - half, p + half""",
        ],
        "verdict": [
            """
def verdict(low, high, sense, bound):  # never undecided
    return "holds" if (low > bound if sense != "<=" else high <= bound) else "fails"
""",
            """
def verdict(low, high, sense, bound):  # by the middle of the interval
    middle = (low + high) / 2
    return "holds" if (middle <= bound if sense == "<=" else middle > bound) else "fails"
""",
            """
def verdict(low, high, sense, bound):  # > as >=
    holds, fails = (high <= bound, low > bound) if sense == "<=" else (low >= bound, high < bound)
    return "holds" if holds else "fails" if fails else "not decided"
""",
        ],
        "mcnemar": [
            """
def mcnemar(before, after):  # one-sided
    before, after = numpy.asarray(before, dtype=bool), numpy.asarray(after, dtype=bool)
    lost, gained = int((before & ~after).sum()), int((~before & after).sum())
    n = lost + gained
    return lost, gained, sum(comb(n, i) for i in range(min(lost, gained) + 1)) / 2 ** n""",
            """
def mcnemar(before, after):  # the approximation by chi squared
    before, after = numpy.asarray(before, dtype=bool), numpy.asarray(after, dtype=bool)
    lost, gained = int((before & ~after).sum()), int((~before & after).sum())
    return lost, gained, float(scipy.stats.chi2.sf((lost - gained) ** 2 / max(1, lost + gained), 1))""",
            """
def mcnemar(before, after):  # gained and lost exchanged
    before, after = numpy.asarray(before, dtype=bool), numpy.asarray(after, dtype=bool)
    one, other = int((~before & after).sum()), int((before & ~after).sum())
    n = one + other
    return one, other, min(1.0, 2 * sum(comb(n, i) for i in range(min(one, other) + 1)) / 2 ** n)""",
        ],
        "cluster": [
            """
def cluster_interval(values, clusters, repetitions=1000, seed=0):  # draws tasks
    generator, values = numpy.random.default_rng(seed), numpy.asarray(values, dtype=float)
    means = [generator.choice(values, len(values)).mean() for _ in range(repetitions)]
    return tuple(numpy.quantile(means, [0.025, 0.975]))""",
            """
def cluster_interval(values, clusters, repetitions=1000, seed=0):  # every cluster counts the same
    generator = numpy.random.default_rng(seed)
    means = pandas.Series(numpy.asarray(values, dtype=float)).groupby(numpy.asarray(clusters)).mean().to_numpy()
    drawn = [generator.choice(means, len(means)).mean() for _ in range(repetitions)]
    return tuple(numpy.quantile(drawn, [0.025, 0.975]))""",
        ],
        "holm": [
            """
def holm(p_values):  # Bonferroni
    return [min(1.0, len(p_values) * p) for p in p_values]""",
            """
def holm(p_values):  # sorted
    ordered, largest, found = sorted(p_values), 0.0, []
    for rank, p in enumerate(ordered):
        largest = max(largest, min(1.0, (len(ordered) - rank) * p))
        found.append(largest)
    return found""",
            """
def holm(p_values):  # does not keep the order of the values
    ranks = numpy.argsort(numpy.argsort(p_values))
    return [min(1.0, (len(p_values) - rank) * p) for rank, p in zip(ranks, p_values)]""",
        ],
        "claim": [
            '''
entry = """
- {id: my-claim, paper: cloudapibench, place: Section 3.2, statement: turned round, artifact: fig7a_retriever_precision,
   test: {kind: greater, metric: valid_percent, left: precision_50/high, right: base/high}}
"""''',
            '''
entry = """
- {id: my-claim, paper: cloudapibench, place: Section 3.2, statement: rare APIs, artifact: fig7a_retriever_precision,
   test: {kind: greater, metric: valid_percent, left: base/low, right: precision_50/low}}
"""''',
        ],
    },
}
