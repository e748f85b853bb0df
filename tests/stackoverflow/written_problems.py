"""Makes problems in DS-1000's format for these tests, without any text from DS-1000."""

CONTEXT = '''import copy
import math
import tokenize, io


def generate_test_case(test_case_id):
    def define_test_input(test_case_id):
        return [1, 2, 3] if test_case_id == 1 else [4, 0]

    def generate_ans(data):
        return max(data) - min(data)

    test_input = define_test_input(test_case_id)
    expected_result = generate_ans(copy.deepcopy(test_input))
    return test_input, expected_result


def exec_test(result, ans):
    return int(result == ans)


exec_context = r"""
import json
numbers = test_input
[insert]
"""


def test_execution(solution: str):
    code = exec_context.replace("[insert]", solution)
    for i in range(2):
        test_input, expected_result = generate_test_case(i + 1)
        test_env = {"test_input": test_input}
        exec(code, test_env)
        assert exec_test(test_env["result"], expected_result)
'''
STRING = """

def test_string(solution: str):
    lines = io.BytesIO(solution.encode("utf-8")).readline
    assert "for" not in [token.string for token in tokenize.tokenize(lines)]
"""
INSIDE = CONTEXT.replace("[insert]", "def spread(numbers):\n[insert]\nresult = spread(numbers)", 1)
REFERENCE = "result = max(numbers) - min(numbers)\n"


def record(number=1, context=CONTEXT, reference=REFERENCE, origin=1, **about):
    """Return a problem as a line of DS-1000's file has it. ``about`` has more metadata."""
    prompt = (
        "How far apart are they?\n<code>\ndef spread(numbers):\n    ### BEGIN SOLUTION"
        if context == INSIDE
        else "How far apart are they?\n<code>\nnumbers = [1, 2]\n</code>\nBEGIN SOLUTION\n<code>\n"
    )
    metadata = {
        "problem_id": number,
        "library_problem_id": number,
        "library": "Numpy",
        "perturbation_type": "Origin" if number == origin else "Surface",
        "perturbation_origin_id": origin,
    }
    return {
        "prompt": prompt,
        "reference_code": reference,
        "code_context": context,
        "metadata": metadata | about,
    }
