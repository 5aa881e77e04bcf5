"""Textbook linear algebra on lists of rows of scalars."""


def elements(A):
    """The rows of a matrix as lists of its elements."""
    return [[A[i, j] for j in range(A.shape[1])] for i in range(A.shape[0])]


def transposed(A):
    """Aᵀ."""
    return [list(column) for column in zip(*A, strict=True)]


def dot(a, b):
    """Σ a_k b_k."""
    return sum(p * q for p, q in zip(a, b, strict=True))


def product(A, B):
    """A B."""
    columns = transposed(B)
    return [[dot(row, column) for column in columns] for row in A]


def eliminated(A, B):
    """Upper triangular U and C with U x = C for all x with A x = B, without pivoting."""
    upper, right = [list(row) for row in A], [list(row) for row in B]
    for k in range(len(upper)):
        for i in range(k + 1, len(upper)):
            factor = upper[i][k] / upper[k][k]
            upper[i] = [
                a - factor * p if j > k else 0.0 for j, (a, p) in enumerate(zip(upper[i], upper[k], strict=True))
            ]
            right[i] = [b - factor * p for b, p in zip(right[i], right[k], strict=True)]
    return upper, right


def back_substituted(upper, right):
    """X with U X = C."""
    X = [right[k] for k in range(len(upper))]
    for k in reversed(range(len(upper))):
        known = range(k + 1, len(upper))
        X[k] = [(b - sum(upper[k][i] * X[i][j] for i in known)) / upper[k][k] for j, b in enumerate(right[k])]
    return X


def solution(A, B):
    """X with A X = B."""
    return back_substituted(*eliminated(A, B))


def factor(xp, A):
    """Lower triangular L with L Lᵀ = A, from the lower half of A."""
    L = [[0.0] * len(A) for _ in A]
    for i in range(len(A)):
        for j in range(i + 1):
            rest = A[i][j] - dot(L[i][:j], L[j][:j])
            L[i][j] = xp.sqrt(rest) if i == j else rest / L[j][j]
    return L
