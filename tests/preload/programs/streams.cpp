// SPDX-License-Identifier: Apache-2.0
// Streams of C++, alone and beside descriptors and streams of C. Each scenario prints only what must be the same with
// and without the library. Usage: streams SCENARIO (in an empty folder)
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ext/stdio_filebuf.h>
#include <fstream>
#include <iostream>
#include <random>
#include <string>

namespace {

long size_of(const char* path) {
    struct stat got {};
    return stat(path, &got) == 0 ? static_cast<long>(got.st_size) : -1;
}

void put(std::ostream& to, int lines, char sign) {
    for (int i = 0; i < lines; ++i) {
        to << i << ' ' << std::string(static_cast<std::size_t>(i % 90), sign) << '\n';
    }
}

unsigned long sum(std::istream& from) {
    unsigned long hash = 0xCBF29CE484222325UL;
    for (char sign = 0; from.get(sign);) {
        hash = (hash ^ static_cast<unsigned char>(sign)) * 0x100000001B3UL;
    }
    return hash;
}

void writes_and_reads() {
    std::ofstream out("out");
    put(out, 20000, 'a');
    std::printf("%d %ld\n", out.good(), static_cast<long>(out.tellp()));
    out.close();
    std::printf("%d %ld\n", out.fail(), size_of("out"));
    std::ifstream in("out");
    std::string line;
    long lines = 0;
    while (std::getline(in, line)) {
        ++lines;
    }
    in.clear();
    in.seekg(-1000, std::ios::end);
    std::printf("%ld %ld\n", lines, static_cast<long>(in.tellg()));
    std::printf("%lx\n", sum(in));
}

void both_ways() {
    std::fstream file("out", std::ios::in | std::ios::out | std::ios::trunc | std::ios::binary);
    std::mt19937 random(7);
    for (int i = 0; i < 3000; ++i) {
        const long position = static_cast<long>(random() % 100000);
        char data[300] = {};
        file.clear();
        if (random() % 2 == 0) {
            file.seekp(position);
            std::memset(data, 'a' + i % 26, sizeof(data));
            file.write(data, 1 + static_cast<long>(random() % 299));
        } else {
            file.seekg(position);
            file.read(data, 1 + static_cast<long>(random() % 299));
            unsigned check = 0;
            for (const char byte : data) {
                check = check * 31 + static_cast<unsigned char>(byte);
            }
            std::printf("%ld %u\n", static_cast<long>(file.gcount()), check);
        }
        if (i % 500 == 0) {
            file.flush();
            std::printf("size %ld\n", size_of("out"));
        }
    }
}

void large_pieces() {
    std::ofstream out("out", std::ios::binary);
    const std::string piece(100000, 'p');
    for (int i = 0; i < 40; ++i) {
        out << "head" << piece;  // libstdc++ joins the two in one writev
    }
    std::printf("%ld\n", static_cast<long>(out.tellp()));
}

void appends() {
    for (int i = 0; i < 3; ++i) {
        std::ofstream out("out", std::ios::app);
        put(out, 300, static_cast<char>('a' + i));
        std::printf("%ld\n", static_cast<long>(out.tellp()));
        std::ofstream other("out", std::ios::app);
        other << "other" << std::endl;
        out << "first" << std::endl;
        std::printf("%ld\n", size_of("out"));
    }
}

void begins_at_end() {
    std::ofstream("out") << std::string(5000, 'a');
    std::ofstream out("out", std::ios::in | std::ios::out | std::ios::ate);
    std::printf("%ld\n", static_cast<long>(out.tellp()));
    put(out, 300, 'b');
}

std::ofstream& everywhere() {
    static std::ofstream out("out");
    return out;
}
void left_open() {
    put(everywhere(), 60000, 'a');  // the first 16 writes of a file may bypass the buffer
}

void empties_it() {
    std::ofstream first("out");
    put(first, 3000, 'a');
    first.flush();
    std::ofstream second("out");
    std::printf("%ld\n", size_of("out"));
    put(second, 100, 'b');
    second.close();
    std::printf("%ld\n", size_of("out"));
    put(first, 100, 'c');
}

void beside_descriptors() {
    std::ofstream out("out");
    put(out, 1000, 'a');
    out.flush();
    const int fd = open("out", O_RDWR);
    char data[101] = "";
    std::printf("%zd ", pread(fd, data, 100, 5000));
    std::printf("%s\n", data);
    std::printf("%zd\n", pwrite(fd, "HERE", 4, 5000));
    std::ifstream in("out");
    in.seekg(4990);
    in.read(data, 30);
    data[30] = 0;
    std::printf("%s\n", data);
    close(fd);
}

void beside_c() {
    std::ofstream out("out");
    put(out, 500, 'a');
    out.flush();
    std::FILE* file = std::fopen("out", "r+");
    std::fseek(file, 3000, SEEK_SET);
    std::fputs("written by C", file);
    std::fflush(file);
    put(out, 500, 'b');
    out.flush();
    std::fseek(file, 0, SEEK_END);
    std::printf("%ld\n", std::ftell(file));
    std::fputs("the end", file);
    std::fclose(file);
}

struct Buffer : __gnu_cxx::stdio_filebuf<char> {};

/// Uses the FILE of a C++ stream as a C stream.
void same_file_from_c() {
    Buffer buffer;
    buffer.open("out", std::ios::in | std::ios::out | std::ios::trunc);
    std::ostream out(&buffer);
    put(out, 500, 'a');
    out.flush();
    std::fprintf(buffer.file(), "written by C %d\n", 7);
    std::fflush(buffer.file());
    put(out, 500, 'b');
    out.flush();
    std::fprintf(buffer.file(), "and again\n");
    std::fflush(buffer.file());
    std::printf("%ld %ld\n", std::ftell(buffer.file()), size_of("out"));
}

void forks() {
    std::ofstream out("out");
    put(out, 500, 'a');
    out.flush();
    if (fork() == 0) {
        put(out, 100, 'c');
        out.flush();
        _exit(0);
    }
    wait(nullptr);
    put(out, 100, 'p');
    out.close();
    std::printf("%ld\n", size_of("out"));
}

void moves() {
    std::ofstream first("out");
    put(first, 500, 'a');
    std::ofstream second(std::move(first));
    put(second, 500, 'b');
    std::ofstream third("other");
    third.swap(second);
    put(third, 500, 'c');
    put(second, 500, 'd');
}

void limited() {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit = {100000, 100000};
    setrlimit(RLIMIT_FSIZE, &limit);
    std::ofstream out("out");
    put(out, 5000, 'a');
    out.close();
    std::printf("%d %ld\n", out.fail(), size_of("out"));
}

void closes_all_streams() {
    auto* out = new std::ofstream("out");  // its FILE is closed under it
    put(*out, 3000, 'a');
    out->flush();
    std::printf("%ld\n", size_of("out"));
    std::fflush(stdout);
    put(*out, 3000, 'b');
    out->flush();
    fcloseall();
    _exit(0);
}

const struct {
    const char* name;
    void (*run)();
} scenarios[] = {
    {"writes_and_reads", writes_and_reads},
    {"both_ways", both_ways},
    {"large_pieces", large_pieces},
    {"appends", appends},
    {"begins_at_end", begins_at_end},
    {"left_open", left_open},
    {"empties_it", empties_it},
    {"beside_descriptors", beside_descriptors},
    {"beside_c", beside_c},
    {"same_file_from_c", same_file_from_c},
    {"forks", forks},
    {"moves", moves},
    {"limited", limited},
    {"closes_all_streams", closes_all_streams},
};

}  // namespace

int main(int argc, char** argv) {
    for (const auto& scenario : scenarios) {
        if (argc == 2 && std::strcmp(argv[1], "--list") == 0) {
            std::printf("%s\n", scenario.name);
        } else if (argc == 2 && std::strcmp(argv[1], scenario.name) == 0) {
            scenario.run();
            return 0;
        }
    }
    return argc == 2 && std::strcmp(argv[1], "--list") == 0 ? 0 : 2;
}
