"""How the API index, the frequency tables and the tasks were made, of the cloud SDKs and of any
Python package.
"""
