"""`adbench bisect`: the first release of a library, or the first commit, with a wrong or slower derivative."""
