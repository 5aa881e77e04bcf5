// ADOL-C. Variants: 0 records at every call; 1 records once, and again when a constant or a comparison's outcome
// changes.
#pragma once

#include <adolc/adolc.h>

#include <stdexcept>
#include <unistd.h>
#include <vector>

template <class F>
struct Library {
    const F& f;
    int variant;
    int n;
    short tag;  // part of the file name of a long recording
    std::vector<double> constants, x, along;
    std::vector<double*> rows;
    std::size_t sizes[4] = {0, 0, 0, 0};  // of the buffers; 0 for ADOL-C's own
    bool recorded = false;

    Library(const F& function, int way)
        : f(function), variant(way), n(static_cast<int>(f.size())), tag(static_cast<short>(getpid() % 32768)) {
        disableBranchSwitchWarnings();
    }

    double gradient(const double* at, double w, double* g) {
        const double y = forward(at, 1);
        checked(fos_reverse(tag, 1, n, &w, g));
        return y;
    }

    double jvp(const double* at, const double* v) {
        double slope = 0.0;
        double y;
        forward(at, 0);
        x.assign(at, at + n);
        along.assign(v, v + n);
        checked(fos_forward(tag, 1, n, 0, x.data(), along.data(), &y, &slope));
        return slope;
    }

    void hvp(const double* at, const double* v, double* h) {
        forward(at, 0);
        x.assign(at, at + n);
        along.assign(v, v + n);
        checked(hess_vec(tag, n, x.data(), along.data(), h));
    }

    void hessian(const double* at, double* h) {
        forward(at, 0);
        x.assign(at, at + n);
        rows.resize(n);
        for (int i = 0; i < n; ++i) rows[i] = h + static_cast<std::ptrdiff_t>(i) * n;
        checked(::hessian(tag, n, x.data(), rows.data()));  // the lower triangle
        for (int i = 0; i < n; ++i)
            for (int j = i + 1; j < n; ++j) rows[i][j] = rows[j][i];
    }

private:
    // The value; `keep` stores values for a reverse sweep.
    double forward(const double* at, int keep) {
        double y;
        if (variant != 0 && !f.constants_changed(constants) && recorded && zos_forward(tag, 1, n, keep, at, &y) >= 0) {
            return y;
        }
        recorded = false;
        y = record(at, keep);
        if (grown() && variant != 0) y = record(at, keep);
        recorded = true;
        return y;
    }

    double record(const double* at, int keep) {
        double y = 0.0;
        if (sizes[0] == 0) {
            trace_on(tag, keep);
        } else {
            trace_on(tag, keep, sizes[0], sizes[1], sizes[2], sizes[3]);
        }
        try {
            std::vector<adouble> ax(f.size());
            for (int i = 0; i < n; ++i) ax[i] <<= at[i];
            adouble ay = f(ax.data());
            ay >>= y;
        } catch (...) {
            trace_off();
            throw;
        }
        trace_off();
        return y;
    }

    // Whether the recording went to files; enlarges the buffers for the next one.
    bool grown() {
        std::size_t found[STAT_SIZE];
        tapestats(tag, found);
        const bool on_disk = found[OP_FILE_ACCESS] || found[LOC_FILE_ACCESS] || found[VAL_FILE_ACCESS] ||
                             found[TAY_STACK_SIZE] > found[TAY_BUFFER_SIZE];
        if (on_disk) {
            const std::size_t needed[4] = {found[NUM_OPERATIONS], found[NUM_LOCATIONS], found[NUM_VALUES],
                                           found[TAY_STACK_SIZE]};
            for (int i = 0; i < 4; ++i) sizes[i] = std::max<std::size_t>(TBUFSIZE, needed[i] + needed[i] / 8 + 1024);
        }
        return on_disk;
    }

    static void checked(int code) {
        if (code < 0) throw std::runtime_error("a sweep failed with code " + std::to_string(code));
    }
};
