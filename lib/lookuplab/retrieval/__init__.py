"""Which documents belong to a query: rankers, and the measures of their rankings."""
