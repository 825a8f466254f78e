// EntityDepths: how deep a document's entities refer to each other, while they are being declared.
//
// expat expands an entity inside of an entity by calling itself, so that a chain of thousands takes a thread's stack. The depth
// must be known before anything is expanded, and a default value of an attribute is expanded inside of the DTD; hence it is kept up to
// date with each declaration. A depth only grows, and not beyond the limit: the cost is in proportion to the references.
#pragma once
#include <cstdint>
#include <cstring>
#include <vector>

#include "bytes_table.hpp"
#include "entity_names.hpp"

namespace xsift {

class EntityDepths {
    struct Entity {
        int32_t depth = 0;      // 1 if it refers to no other; 0 while it is not declared
        int32_t last_user = -1;
        std::vector<int32_t> users;  // entities whose texts refer to it
    };
    BytesTable names;
    std::vector<Entity> entities;

    int32_t number_of(const char* name, size_t length) {
        const int32_t number = names.add(name, length);
        if (size_t(number) == entities.size()) entities.emplace_back();
        return number;
    }

    // Whether an entity leads to itself.
    bool is_recursive(int32_t entity) const {
        std::vector<char> met(entities.size(), 0);
        std::vector<int32_t> todo{entity};
        while (!todo.empty()) {
            const int32_t at = todo.back();
            todo.pop_back();
            for (const int32_t user : entities[at].users) {
                if (user == entity) return true;
                if (met[user]) continue;
                met[user] = 1;
                todo.push_back(user);
            }
        }
        return false;
    }

   public:
    enum Verdict { FINE, TOO_DEEP, RECURSIVE };

    void clear() {
        if (!entities.empty()) *this = EntityDepths();
    }

    // Notes a declaration.
    Verdict declare(const char* name, const char* text, size_t length, int64_t most) {
        const int32_t declared = number_of(name, std::strlen(name));
        if (entities[declared].depth) return FINE;  // the first declaration counts
        int32_t depth = 1;
        EntityNames::each_reference(text, length, [&](const char* other, size_t size) {
            const int32_t number = number_of(other, size);
            Entity& entity = entities[number];
            if (entity.last_user != declared) {
                entity.last_user = declared;
                entity.users.push_back(declared);
                if (entity.depth >= depth) depth = entity.depth + 1;
            }
            return true;
        });
        std::vector<std::pair<int32_t, int32_t>> deeper{{declared, depth}};
        while (!deeper.empty()) {
            const auto [at, now] = deeper.back();
            deeper.pop_back();
            Entity& entity = entities[at];
            if (entity.depth >= now || (at != declared && !entity.depth)) continue;
            if (now > most) {
                // So few cannot nest deeper, unless they lead in a circle, which expat tells if it is ever entered.
                if (int64_t(entities.size()) > most) return is_recursive(at) ? RECURSIVE : TOO_DEEP;
                continue;
            }
            entity.depth = now;
            for (const int32_t user : entity.users) deeper.emplace_back(user, now + 1);
        }
        return FINE;
    }
};

}  // namespace xsift
