"""Does a gradient have the same bits again: in later calls, in other processes, on more threads, in other batches?"""
