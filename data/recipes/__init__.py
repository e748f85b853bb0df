"""How the committed data, tasks and models were made: each module is a recipe, run by ``python -m
recipes.mini.problems``.

No score needs it; it imports ``lookuplab``, never the other way round.
"""
