"""Which documents belong to a query: a ranker, a ranker of chosen precision, and the measures of both."""
