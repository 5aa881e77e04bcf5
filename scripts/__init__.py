"""What only this repository uses: generated pages of the documentation, pictures, and the commands of contributors."""
