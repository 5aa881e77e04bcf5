/* A worker for adbench in C: gradients by hand.
 *
 *     cc -O2 -o worker worker.c -lcjson -lm
 *     adbench check -b 'process:./worker' -c log_sum_exp -c rosenbrock
 *
 * JSON by cJSON (Debian: libcjson-dev).
 */

#define _POSIX_C_SOURCE 200809L

#include <cjson/cJSON.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { PROTOCOL = 1, MOST_PREPARED = 4096, MOST_PATH = 4096 };

/* f(x) and, where `by` is not NULL, its gradient. */
typedef double Function(size_t n, const double *x, double *by);

static double log_sum_exp(size_t n, const double *x, double *by) {
    double largest = x[0], sum = 0.0;
    for (size_t i = 1; i < n; ++i)
        if (x[i] > largest) largest = x[i];
    for (size_t i = 0; i < n; ++i) sum += exp(x[i] - largest);
    if (by)
        for (size_t i = 0; i < n; ++i) by[i] = exp(x[i] - largest) / sum;
    return largest + log(sum);
}

static double rosenbrock(size_t n, const double *x, double *by) {
    double total = 0.0;
    if (by) memset(by, 0, n * sizeof *by);
    for (size_t i = 0; i + 1 < n; ++i) {
        const double gap = x[i + 1] - x[i] * x[i], rest = 1.0 - x[i];
        total += 100.0 * gap * gap + rest * rest;
        if (by) {
            by[i] += -400.0 * x[i] * gap - 2.0 * rest;
            by[i + 1] += 200.0 * gap;
        }
    }
    return total;
}

static const struct {
    const char *name;
    Function *f;
} CASES[] = {{"log_sum_exp", log_sum_exp}, {"rosenbrock", rosenbrock}};

/* What `hello` told, and what each request prepared, by its id. */
static char folder[MOST_PATH];
static size_t large;
static struct {
    Function *f;
    bool value, gradient;
} prepared[MOST_PREPARED];

/* Arrays: base64 of little-endian float64, or a file of the folder. The machine is taken to be little-endian. */

static const char DIGITS[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static uint8_t *from_base64(const char *text, size_t *size) {
    const size_t length = strlen(text);
    uint8_t *bytes = malloc(length / 4 * 3 + 1);
    uint32_t held = 0;
    int bits = 0;
    *size = 0;
    for (size_t i = 0; i < length && text[i] != '='; ++i) {
        const char *digit = strchr(DIGITS, text[i]);
        if (!digit) continue;
        held = held << 6 | (uint32_t)(digit - DIGITS);
        bits += 6;
        if (bits >= 8) bytes[(*size)++] = (uint8_t)(held >> (bits -= 8));
    }
    return bytes;
}

static char *to_base64(const uint8_t *bytes, size_t size) {
    char *text = malloc((size + 2) / 3 * 4 + 1), *end = text;
    for (size_t i = 0; i < size; i += 3) {
        const size_t there = size - i < 3 ? size - i : 3;
        const uint32_t held = (uint32_t)bytes[i] << 16 | (there > 1 ? (uint32_t)bytes[i + 1] << 8 : 0) |
                              (there > 2 ? bytes[i + 2] : 0);
        for (size_t k = 0; k < 4; ++k) *end++ = k > there ? '=' : DIGITS[held >> (18 - 6 * k) & 63];
    }
    *end = '\0';
    return text;
}

static double *numbers_of(const cJSON *array, size_t *n) {
    const cJSON *file = cJSON_GetObjectItem(array, "file"), *base64 = cJSON_GetObjectItem(array, "base64");
    size_t size = 0;
    uint8_t *bytes = NULL;
    if (file) {
        char path[2 * MOST_PATH];
        snprintf(path, sizeof path, "%s/%s", folder, file->valuestring);
        FILE *from = fopen(path, "rb");
        if (!from) return NULL;
        fseek(from, 0, SEEK_END);
        size = (size_t)ftell(from);
        rewind(from);
        bytes = malloc(size + 1);
        if (fread(bytes, 1, size, from) != size) size = 0;
        fclose(from);
    } else if (base64) {
        bytes = from_base64(base64->valuestring, &size);
    }
    *n = size / sizeof(double);
    return (double *)bytes;
}

static cJSON *array_of(const cJSON *shape, const double *numbers, size_t n) {
    cJSON *array = cJSON_CreateObject();
    cJSON_AddItemToObject(array, "shape", shape ? cJSON_Duplicate(shape, true) : cJSON_CreateArray());
    if (n * sizeof *numbers >= large) {
        char path[2 * MOST_PATH];
        snprintf(path, sizeof path, "%s/out", folder);
        FILE *to = fopen(path, "wb");
        if (to) {
            fwrite(numbers, sizeof *numbers, n, to);
            fclose(to);
        }
        cJSON_AddStringToObject(array, "file", "out");
        return array;
    }
    char *text = to_base64((const uint8_t *)numbers, n * sizeof *numbers);
    cJSON_AddStringToObject(array, "base64", text);
    free(text);
    return array;
}

/* Each answers a request by adding to `answer`. */

static void hello(const cJSON *request, cJSON *answer) {
    snprintf(folder, sizeof folder, "%s", cJSON_GetObjectItem(request, "folder")->valuestring);
    large = (size_t)cJSON_GetObjectItem(request, "large")->valuedouble;
    cJSON_AddNumberToObject(answer, "protocol", PROTOCOL);
}

static void prepare(const cJSON *request, cJSON *answer) {
    const char *name = cJSON_GetObjectItem(request, "case")->valuestring;
    const char *operator= cJSON_GetObjectItem(request, "operator")->valuestring;
    const int id = cJSON_GetObjectItem(request, "id")->valueint;
    Function *f = NULL;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; ++i)
        if (!strcmp(CASES[i].name, name)) f = CASES[i].f;
    const bool both = !strcmp(operator, "value_and_gradient");
    if (!f) {
        cJSON_AddStringToObject(answer, "unsupported", "has log_sum_exp and rosenbrock only");
    } else if (!both && strcmp(operator, "value") && strcmp(operator, "gradient")) {
        cJSON_AddStringToObject(answer, "unsupported", "has hand-written values and gradients only");
    } else {
        prepared[id % MOST_PREPARED].f = f;
        prepared[id % MOST_PREPARED].value = both || !strcmp(operator, "value");
        prepared[id % MOST_PREPARED].gradient = both || !strcmp(operator, "gradient");
        cJSON_AddObjectToObject(answer, "phases");
    }
}

static void call(const cJSON *request, cJSON *answer) {
    const int number = cJSON_GetObjectItem(request, "prepared")->valueint % MOST_PREPARED;
    const cJSON *array = cJSON_GetObjectItem(cJSON_GetObjectItem(request, "inputs"), "x");
    const double runs = cJSON_GetObjectItem(request, "runs")->valuedouble;
    const double seconds = cJSON_GetObjectItem(request, "seconds")->valuedouble;
    size_t n = 0;
    double *x = numbers_of(array, &n), value = 0.0, together = 0.0;
    if (!x || !n) {
        cJSON_AddStringToObject(answer, "failed", "the array x cannot be read");
        free(x);
        return;
    }
    double *by = malloc(n * sizeof *by);
    cJSON *took = cJSON_AddArrayToObject(answer, "nanoseconds");
    for (double run = 0; run < runs || together < seconds * 1e9; ++run) {
        struct timespec start, end;
        clock_gettime(CLOCK_MONOTONIC, &start);
        value = prepared[number].f(n, x, prepared[number].gradient ? by : NULL);
        clock_gettime(CLOCK_MONOTONIC, &end);
        const double ns = 1e9 * (double)(end.tv_sec - start.tv_sec) + (double)(end.tv_nsec - start.tv_nsec);
        cJSON_AddItemToArray(took, cJSON_CreateNumber(ns));
        together += ns;
    }
    cJSON *result = cJSON_AddArrayToObject(cJSON_AddObjectToObject(answer, "result"), "list");
    if (prepared[number].value) cJSON_AddItemToArray(result, array_of(NULL, &value, 1));
    if (prepared[number].gradient)
        cJSON_AddItemToArray(result, array_of(cJSON_GetObjectItem(array, "shape"), by, n));
    free(by);
    free(x);
}

int main(void) {
    char *line = NULL;
    size_t room = 0;
    while (getline(&line, &room, stdin) > 0) {
        cJSON *request = cJSON_Parse(line), *answer = cJSON_CreateObject();
        const cJSON *what = cJSON_GetObjectItem(request, "do"), *id = cJSON_GetObjectItem(request, "id");
        cJSON_AddItemToObject(answer, "id", id ? cJSON_Duplicate(id, true) : cJSON_CreateNull());
        if (!cJSON_IsString(what) || !cJSON_IsNumber(id)) {
            cJSON_AddStringToObject(answer, "failed", "the line is no request");
        } else if (!strcmp(what->valuestring, "hello")) {
            hello(request, answer);
        } else if (!strcmp(what->valuestring, "prepare")) {
            prepare(request, answer);
        } else if (!strcmp(what->valuestring, "call")) {
            call(request, answer);
        } else {
            cJSON_AddStringToObject(answer, "failed", "the request is neither hello, prepare nor call");
        }
        char *text = cJSON_PrintUnformatted(answer);
        puts(text);
        fflush(stdout);
        free(text);
        cJSON_Delete(answer);
        cJSON_Delete(request);
    }
    free(line);
    return 0;
}
