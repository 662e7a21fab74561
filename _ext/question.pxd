# One contour for a sum of privacy losses, without Python objects: see law.h and contour.h.

cdef extern from "contour.h" nogil:
    ctypedef struct dpcal_line:
        pass

    ctypedef struct dpcal_tilt:
        pass

    ctypedef struct dpcal_curve:
        const double* at
        ptrdiff_t n
        double* lower
        double* upper

    ctypedef struct dpcal_law:
        double highest, upper, log_unaffected, steep, wanted, surplus, reach, latest, normal, until
        double merged_loss[2]
        double merged_log[2]
        dpcal_line line
        double *block
        int owned

    ctypedef struct dpcal_work:
        int (*stopped)(void* owner)
        void* owner

    ctypedef struct dpcal_beyond:
        double p, q, units
        double *tilts
        double *bounds

    ctypedef struct dpcal_question:
        dpcal_law* laws
        const double* counts
        dpcal_tilt* parts
        ptrdiff_t k
        dpcal_curve curve
        int patient
        const dpcal_beyond* beyond
        dpcal_work* work

    ctypedef struct dpcal_answer:
        double lower, upper
        int status, sampling, smoothed

    enum:
        DPCAL_DONE, DPCAL_WIDE, DPCAL_MEMORY, DPCAL_STOPPED
        DPCAL_EPSILON, DPCAL_LOG_DELTA, DPCAL_LOG_DELTAS
        DPCAL_PUTS

    ctypedef struct dpcal_moments:
        double log_mass, mean, variance, fourth

    dpcal_line dpcal_line_of(double* rows, ptrdiff_t n)
    ptrdiff_t dpcal_padded(ptrdiff_t n)
    void dpcal_weights "DPCAL_WIDEST(dpcal_weights)" (
        const dpcal_law* law, double angle, const double* points, ptrdiff_t n, double* re, double* im
    )
    void dpcal_sampled_gaussian(dpcal_law* law, double q, double sigma, int add)
    void dpcal_gaussian(dpcal_law* law, double variance)
    int dpcal_take_points(
        dpcal_law* law, ptrdiff_t n, double* rows, const double* gone, double units, double* weights
    )
    int dpcal_moments_at(const dpcal_law* law, double c, double* weights, dpcal_moments* out)
    void dpcal_free_work(dpcal_work* work)
    void dpcal_ask(dpcal_question* ask, int kind, double epsilon, double log_delta, dpcal_answer* out)
