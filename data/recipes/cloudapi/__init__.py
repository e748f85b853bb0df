"""These recipes build the API index, the frequency tables and the tasks, for the cloud SDKs and for
any Python package.
"""
