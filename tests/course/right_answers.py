"""Other right answers than the solutions, one per lesson and exercise."""

RIGHT = {
    "lesson0_tokens": {
        "pieces": """
def pieces(name):
    import re
    return re.findall("^[^_]+|_[^_]+", name) + ["("]""",
        "probabilities": """
def probabilities(counted):
    shares = numpy.array(list(counted.values())) / numpy.sum(list(counted.values()))
    return dict(zip(counted, shares.tolist()))""",
        "greedy": """
def greedy(model, start, most=8):
    if start == "(" or most == 1:
        return [start]
    best, *_ = sorted(model[start].items(), key=lambda pair: -pair[1])
    return [start] + greedy(model, best[0], most - 1)""",
        "logprob": """
def logprob(model, tokens):
    chances = [model[a][b] if a in model and b in model[a] else 0 for a, b in zip(tokens, tokens[1:])]
    with numpy.errstate(divide="ignore"):
        return float(numpy.log(chances).sum())""",
        "score": """
def score(question, document, rarity):
    counted = Counter(question.lower().split())
    return sum(rarity[word] for word in counted if word in document and word in rarity)""",
    },
    "lesson1_hallucination": {
        "exists": """
def exists(task, name):
    return any(spec.name == name for spec in index.specs
               if (spec.provider, spec.client, spec.service) == (task.provider, task.client, task.service))""",
        "shares": """
def valid_shares(table):
    return {name: sum(part.valid) / len(part) for name, part in table.groupby("frequency")}""",
        "confidence": """
def confidence(tokens):
    smallest = 1 if tokens else 0
    for _, probability in tokens:
        if probability < smallest:
            smallest = probability
    return smallest""",
        "auroc": """
def auroc(valid, confidence):
    right = [c for v, c in zip(valid, confidence) if v]
    wrong = [c for v, c in zip(valid, confidence) if not v]
    return sum((a > b) + (a == b) / 2 for a in right for b in wrong) / len(right) / len(wrong)""",
        "threshold": """
def largest_threshold(valid, confidence, most):
    best = 0
    for threshold in numpy.round(numpy.linspace(0, 1, 101), 2):
        below = [c < threshold for v, c in zip(valid, confidence) if v]
        if sum(below) / len(below) <= most:
            best = threshold
    return best""",
    },
    "lesson2_retrieval": {
        "expected": """
def expected_share(hit_valid, miss_valid, precision):
    chances = [precision / 100 * h + (100 - precision) / 100 * m for h, m in zip(hit_valid, miss_valid)]
    return sum(chances) / len(chances)""",
        "break_even": """
def break_even(base, hit, miss):
    if hit <= miss:
        return None
    x = (base - miss) / (hit - miss)
    return x * 100 if 0 <= x <= 1 else None""",
        "policy": """
def retrieves(first, threshold):
    return [not there or sure < threshold for there, sure in zip(first.exists_anywhere, first.minimum)]""",
        "best": """
def best_threshold(answered, precision):
    best, most = None, -1
    for threshold in numpy.arange(20, -1, -1) / 20:  # the smallest of equally good ones
        share = outcome(answered, triggered(answered.first, "dag_confidence", threshold), precision).mean()
        if share >= most:
            best, most = threshold, share
    return best""",
        "reciprocal": """
def reciprocal_rank(ranking, wanted, k=20):
    for place in range(min(k, len(ranking))):
        if ranking[place] in wanted:
            return 1 / (place + 1)
    return 0""",
    },
    "lesson3_decoding": {
        "deserves": """
def deserves_mark(name, previous, suggestions):
    import re
    hidden = previous != "." and (name in BUILTINS or name in RECEIVERS)
    return name in suggestions and not hidden and not re.fullmatch("__.*__", name)""",
        "build": """
def build(names):
    def node(rests):
        firsts = {rest[0] for rest in rests if rest}
        return {first: node([rest[1:] for rest in rests if rest and rest[0] == first]) for first in firsts} | (
            {None: "here"} if any(not rest for rest in rests) else {})
    return node([tuple(name) for name in names])""",
        "choose": """
def choose(trie, probabilities, chosen=()):
    if None in trie:
        return chosen
    likely = probabilities(chosen)
    token = sorted(trie, key=lambda one: -float(likely[one]))[0]
    return choose(trie[token], probabilities, (*chosen, token))""",
        "overruled": """
def overruled(walked):
    found = []
    for i in range(len(walked.steps)):
        step = walked.steps[i]
        if step.allowed is not None and len(step.allowed) and walked.probabilities[i].topk(1).indices[0] != step.token:
            found.append(i)
    return found""",
        "gate": """
def passing(walks, gate):
    marks = [(one, i) for one in walks for i in range(len(one.steps)) if one.steps[i].mark]
    return len([1 for one, i in marks if not one.mark_probability(i) < gate]) / len(marks)""",
    },
    "lesson4_claims": {
        "wilson": """
def wilson(k, n, z=1.96):
    middle, reach = (k + z * z / 2) / (n + z * z), z * (k * (n - k) / n + z * z / 4) ** 0.5 / (n + z * z)
    return middle - reach, middle + reach""",
        "needed": """
def needed(share, width):
    low, high = 0, 1  # too few, enough
    def wide(n):
        return wilson(share * n, n)[1] - wilson(share * n, n)[0] > width
    while wide(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if wide(middle) else (low, middle)
    return high""",
        "verdict": """
def verdict(low, high, sense, bound):
    if low != low or high != high:
        return "not decided"
    inside = {">": lambda x: x > bound, ">=": lambda x: x >= bound, "<=": lambda x: x <= bound}[sense]
    return {(True, True): "holds", (False, False): "fails"}.get((inside(low), inside(high)), "not decided")""",
        "size": """
def size(low, high, printed):
    if numpy.isnan(printed):
        return "no printed value"
    return ("covers" if low <= printed <= high else "larger" if printed < low else "smaller")""",
        "claim": '''
entry = """
- id: another-name
  paper: cloudapibench
  place: Section 3.2
  statement: In other words
  artifact: fig7a_retriever_precision
  models: all
  test:
    kind: monotone
    metric: valid_percent
    over: [base/high, precision_50/high]
    direction: decreasing
"""''',
    },
    "lesson5_comparisons": {
        "changed": """
def changed(before, after):
    change = numpy.asarray(after, dtype=int) - numpy.asarray(before, dtype=int)
    return (change < 0).sum(), (change > 0).sum()""",
        "mcnemar": """
def mcnemar(lost, gained):
    return scipy.stats.binomtest(lost, lost + gained).pvalue if lost + gained else 1""",
        "cluster": """
def cluster_interval(values, clusters, repetitions=1000, seed=1):
    import random
    chance, groups = random.Random(seed), {}
    for value, label in zip(values, clusters):
        groups.setdefault(label, []).append(float(value))
    groups, means = list(groups.values()), []
    for _ in range(repetitions):
        drawn = chance.choices(groups, k=len(groups))
        means.append(sum(map(sum, drawn)) / sum(map(len, drawn)))
    means.sort()
    return means[int(0.025 * repetitions)], means[int(0.975 * repetitions)]""",
        "paired": """
def paired_interval(before, after, clusters, repetitions=2000):
    table = pandas.DataFrame({"change": numpy.subtract(after, before, dtype=float), "label": clusters}).groupby("label").change
    sums, sizes = table.sum().to_numpy(), table.size().to_numpy()
    drawn = numpy.random.default_rng(5).integers(len(sums), size=(repetitions, len(sums)))
    return tuple(numpy.quantile(sums[drawn].sum(axis=1) / sizes[drawn].sum(axis=1), [0.025, 0.975]))""",
        "holm": """
def holm(p_values):
    order, found, largest = numpy.argsort(p_values), numpy.zeros(len(p_values)), 0
    for factor, at in zip(range(len(p_values), 0, -1), order):
        found[at] = largest = max(largest, min(1, factor * p_values[at]))
    return found""",
    },
}
