/* SPDX-License-Identifier: MIT */
/*
 * HdrHistogram: counts of times with three significant digits, from one nanosecond to an hour, and
 * its log of intervals, which the tools of hdrhistogram.org read.
 *
 * Debian 12 has no HdrHistogram_c.  The log asks for zlib's format (RFC 1950), not for compression:
 * the counts are run-length coded already, and lie in it as stored blocks (RFC 1951 section 3.2.4).
 *
 * Sources: HdrHistogram's AbstractHistogram.java (encodeIntoByteBuffer, V2), ZigZagEncoding.java,
 * HistogramLogWriter.java; RFC 4648 section 4 (base64).
 */
#pragma once
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "clock.h"

#define DIGITS 3
/* 2^11 steps tell values of three digits apart; each bucket but the first needs the upper half. */
#define HALF_BITS 10
#define LARGEST (3600 * SECOND)
#define COUNTS ((32 + 1) << HALF_BITS) /* 2^11 << 31 is the first power beyond LARGEST */
#define PAYLOAD_COOKIE 0x1c849313u
#define COMPRESSED_COOKIE 0x1c849314u
#define STORED_MOST 65535
#define ADLER_PRIME 65521
/* A count has at most 9 bytes; 5 bytes each are before and behind at most so many stored blocks. */
#define ENCODED_MOST (COUNTS * 9 + 64 + COUNTS * 9 / STORED_MOST * 5)

struct histogram {
	uint64_t counts[COUNTS];
	uint64_t total;
	ns_t sum, largest;
};

static int index_of(ns_t value)
{
	int bucket = 64 - __builtin_clzll((uint64_t)value | ((2 << HALF_BITS) - 1)) - (HALF_BITS + 1);

	return (bucket << HALF_BITS) + (int)(value >> bucket);
}

/* The largest value that is counted with this index. */
static ns_t value_of(int index)
{
	int bucket = (index >> HALF_BITS) - 1;

	if (bucket < 0)
		return index;
	return ((((ns_t)index - ((ns_t)bucket << HALF_BITS)) + 1) << bucket) - 1;
}

static void record_value(struct histogram *histogram, ns_t value)
{
	if (value < 0)
		value = 0;
	if (value > LARGEST)
		value = LARGEST;
	histogram->counts[index_of(value)]++;
	histogram->total++;
	histogram->sum += value;
	if (value > histogram->largest)
		histogram->largest = value;
}

/* The value that so many thousandths of all values do not exceed; 0: there is no value. */
static ns_t find_quantile(const struct histogram *histogram, uint64_t thousandths)
{
	uint64_t wanted = (histogram->total * thousandths + 999) / 1000, seen = 0;
	int i = 0;

	if (!histogram->total)
		return 0;
	while ((seen += histogram->counts[i]) < wanted)
		i++;
	return value_of(i) < histogram->largest ? value_of(i) : histogram->largest;
}

static uint8_t *put_number(uint8_t *end, uint64_t number, int bytes)
{
	while (bytes--)
		*end++ = (uint8_t)(number >> 8 * bytes);
	return end;
}

/* ZigZag and LEB128; counts and runs are far from the 56 bits where HdrHistogram's differs. */
static uint8_t *put_count(uint8_t *end, int64_t count)
{
	uint64_t rest = (uint64_t)count << 1 ^ (uint64_t)(count >> 63);

	for (; rest >= 0x80; rest >>= 7)
		*end++ = (uint8_t)(rest | 0x80);
	*end++ = (uint8_t)rest;
	return end;
}

/* The counts up to the last one that is not zero; a run of zeros is one negative number. */
static size_t encode_counts(const struct histogram *histogram, uint8_t *to)
{
	uint8_t *header = to, *end = to + 40;
	int last = histogram->total ? index_of(histogram->largest) : -1;
	double ratio = 1.0;
	uint64_t ratio_bits;

	for (int i = 0; i <= last;) {
		int zeros = 0;

		while (!histogram->counts[i + zeros])
			zeros++;
		end = put_count(end, zeros ? -zeros : (int64_t)histogram->counts[i]);
		i += zeros ? zeros : 1;
	}
	memcpy(&ratio_bits, &ratio, sizeof(ratio));
	header = put_number(header, PAYLOAD_COOKIE, 4);
	header = put_number(header, (uint64_t)(end - to - 40), 4);
	header = put_number(header, 0, 4); /* offset of the indices */
	header = put_number(header, DIGITS, 4);
	header = put_number(header, 1, 8); /* the smallest value */
	header = put_number(header, LARGEST, 8);
	put_number(header, ratio_bits, 8);
	return (size_t)(end - to);
}

static size_t wrap_stored(const uint8_t *data, size_t length, uint8_t *to)
{
	uint8_t *end = put_number(to, 0x7801, 2);
	uint32_t low = 1, high = 0;

	for (size_t at = 0; at < length;) {
		size_t part = length - at < STORED_MOST ? length - at : STORED_MOST;

		*end++ = at + part == length;
		*end++ = (uint8_t)part;
		*end++ = (uint8_t)(part >> 8);
		*end++ = (uint8_t)~part;
		*end++ = (uint8_t)(~part >> 8);
		memcpy(end, data + at, part);
		end += part;
		at += part;
	}
	for (size_t i = 0; i < length; i++) {
		low = (low + data[i]) % ADLER_PRIME;
		high = (high + low) % ADLER_PRIME;
	}
	return (size_t)(put_number(end, high << 16 | low, 4) - to);
}

static void write_base64(FILE *to, const uint8_t *data, size_t length)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	for (size_t i = 0; i < length; i += 3) {
		size_t known = length - i < 3 ? length - i : 3;
		uint32_t bits = (uint32_t)data[i] << 16;

		if (known > 1)
			bits |= (uint32_t)data[i + 1] << 8;
		if (known > 2)
			bits |= data[i + 2];
		for (size_t digit = 0; digit < 4; digit++)
			fputc(digit <= known ? digits[bits >> (18 - 6 * digit) & 63] : '=', to);
	}
}

static void write_log_head(FILE *log, ns_t began_at)
{
	double seconds = (double)began_at / SECOND;

	fprintf(log, "#[Values: nanoseconds since the intended start]\n"
		     "#[Histogram log format version 1.3]\n"
		     "#[StartTime: %.3f (seconds since epoch)]\n"
		     "#[BaseTime: %.3f (seconds since epoch)]\n"
		     "\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\","
		     "\"Interval_Compressed_Histogram\"\n",
		seconds, seconds);
}

/* One line of the log: an interval, its start since the log's, its maximum in milliseconds. */
static void write_interval(FILE *log, const char *tag, const struct histogram *histogram, ns_t start,
			   ns_t length)
{
	static uint8_t counts[ENCODED_MOST], encoded[ENCODED_MOST];
	size_t size = wrap_stored(counts, encode_counts(histogram, counts), encoded + 8);

	put_number(put_number(encoded, COMPRESSED_COOKIE, 4), size, 4);
	fprintf(log, "Tag=%s,%.3f,%.3f,%.6f,", tag, (double)start / SECOND, (double)length / SECOND,
		(double)histogram->largest / 1e6);
	write_base64(log, encoded, size + 8);
	fputc('\n', log);
}
