"""Wrong answers that students give, per lesson and exercise, each a typical mistake."""

WRONG = {
    "lesson0_tokens": {
        "pieces": [
            """
def pieces(name):  # without the end
    first, *rest = name.split("_")
    return [first, *("_" + word for word in rest)]""",
            """
def pieces(name):  # without underscores
    return [*name.split("_"), "("]""",
        ],
        "probabilities": [
            """
def probabilities(counted):  # percent
    return {token: 100 * n / sum(counted.values()) for token, n in counted.items()}""",
            """
def probabilities(counted):  # of the most frequent one
    return {token: n / max(counted.values()) for token, n in counted.items()}""",
            """
def probabilities(counted):  # all alike
    return {token: 1 / len(counted) for token in counted}""",
        ],
        "greedy": [
            """
def greedy(model, start, most=8):  # runs in circles for ever, but for the number of tokens that it forgets
    written = [start]
    while written[-1] != "(" and len(written) < 100:
        written.append(max(model[written[-1]], key=model[written[-1]].get))
    return written""",
            """
def greedy(model, start, most=8):  # without the start
    written, token = [], start
    while token != "(" and len(written) < most:
        token = max(model[token], key=model[token].get)
        written.append(token)
    return written""",
            """
def greedy(model, start, most=8):  # the first token
    written = [start]
    while written[-1] != "(" and len(written) < most:
        written.append(sorted(model[written[-1]])[0])
    return written""",
        ],
        "logprob": [
            """
def logprob(model, tokens):  # fails at 0
    return sum(math.log(model[a][b]) for a, b in zip(tokens, tokens[1:]))""",
            """
def logprob(model, tokens):  # the logarithm of a product that is too small
    product = 1.0
    for a, b in zip(tokens, tokens[1:]):
        product *= model.get(a, {}).get(b, 0)
    return math.log(product) if product else -math.inf""",
            """
def logprob(model, tokens):  # to the base of 2
    chances = [model.get(a, {}).get(b, 0) for a, b in zip(tokens, tokens[1:])]
    return sum(math.log2(chance) if chance else -math.inf for chance in chances)""",
        ],
        "score": [
            """
def score(question, document, rarity):  # how many words
    return len(set(question.lower().split()) & document)""",
            """
def score(question, document, rarity):  # repeated words count again
    return sum(rarity.get(word, 0) for word in question.lower().split() if word in document)""",
            """
def score(question, document, rarity):  # capitals are other letters
    return sum(rarity.get(word, 0) for word in set(question.split()) & document)""",
        ],
    },
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
        "needed": [
            """
def needed(share, width):  # half the interval
    n = 1
    while (wilson(share * n, n)[1] - wilson(share * n, n)[0]) / 2 > width:
        n += 1
    return n""",
            """
def needed(share, width):  # Wald's formula
    return max(1, int(numpy.ceil((2 * 1.96) ** 2 * share * (1 - share) / width ** 2)))""",
        ],
        "size": [
            """
def size(low, high, printed):  # turned round
    return ("no printed value" if printed != printed else "larger" if high < printed else "smaller" if low > printed else "covers")""",
            """
def size(low, high, printed):  # always compares
    return ("smaller" if high < printed else "larger" if low > printed else "covers")""",
            """
def size(low, high, printed):  # ends are outside
    return ("no printed value" if printed != printed else "smaller" if high <= printed else "larger" if low >= printed else "covers")""",
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
    "lesson5_comparisons": {
        "changed": [
            """
def changed(before, after):  # exchanged
    return sum(b and not a for a, b in zip(before, after)), sum(a and not b for a, b in zip(before, after))""",
            """
def changed(before, after):  # the difference alone
    return 0, int(numpy.sum(after)) - int(numpy.sum(before))""",
        ],
        "mcnemar": [
            """
def mcnemar(lost, gained):  # one-sided
    n = lost + gained
    return sum(comb(n, i) for i in range(min(lost, gained) + 1)) / 2 ** n""",
            """
def mcnemar(lost, gained):  # the approximation by chi squared
    return float(scipy.stats.chi2.sf((lost - gained) ** 2 / max(1, lost + gained), 1))""",
            """
def mcnemar(lost, gained):  # can be larger than 1
    n = lost + gained
    return 2 * sum(comb(n, i) for i in range(min(lost, gained) + 1)) / 2 ** n""",
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
        "paired": [
            """
def paired_interval(before, after, clusters):  # turned round
    return cluster_interval(numpy.asarray(before, dtype=float) - numpy.asarray(after, dtype=float), clusters)""",
            """
def paired_interval(before, after, clusters):  # as if they were independent
    one, two = cluster_interval(before, clusters), cluster_interval(after, clusters)
    return two[0] - one[1], two[1] - one[0]""",
            """
def paired_interval(before, after, clusters):  # forgets the clusters
    return cluster_interval(numpy.asarray(after, dtype=float) - numpy.asarray(before, dtype=float), numpy.arange(len(before)))""",
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
    },
}
