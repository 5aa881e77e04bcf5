"""Random programs: drawn, judged by 50 digits, shrunk to the operation at fault, and written as scripts."""
